//! The walk over a template's syntax tree: gathers the names it uses, refuses what is not allowed.

use std::ops::Range;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};

use super::filters;
use super::load::{Inside, is_operator, range_length};
use super::syntax::{Problem, Reference, Template};
use crate::suggest;

/// How often a template may use a name: each use may bring in a large value.
const MAX_NAMES: usize = 256;

/// What was found so far, and the names bound by loops around the present place.
#[derive(Default)]
pub(super) struct Walk<'a> {
    pub(super) template: Template,
    locals: Vec<&'a str>,
    names: usize,
    loops: usize,
    inside: Inside,
}

impl<'a> Walk<'a> {
    pub(super) fn statements(&mut self, statements: &[Stmt<'a>]) -> Result<(), Problem> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'a>) -> Result<(), Problem> {
        match statement {
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::IfCond(choice) => {
                self.expression(&choice.expr)?;
                self.statements(&choice.true_body)?;
                self.statements(&choice.false_body)
            }
            Stmt::ForLoop(each) if !each.recursive => {
                self.inside = Inside { iterated: true, ..Inside::default() };
                self.expression(&each.iter)?;
                self.inside = Inside::default();
                let outside = self.locals.len();
                self.loops += 1;
                self.locals.push("loop");
                self.bind(&each.target);
                each.filter_expr.iter().try_for_each(|filter| self.expression(filter))?;
                self.statements(&each.body)?;
                self.loops -= 1;
                self.locals.truncate(outside);
                self.statements(&each.else_body)
            }
            _ => {
                let hint = Some("templates have expressions, `if`, `for` and `raw`".to_owned());
                Err(Problem {
                    message: "this statement is not allowed in a template".to_owned(),
                    hint,
                    span: 0..0,
                })
            }
        }
    }

    fn bind(&mut self, target: &Expr<'a>) {
        match target {
            Expr::Var(var) => self.locals.push(var.id),
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item)),
            _ => {}
        }
    }

    pub(super) fn expression(&mut self, expr: &Expr<'a>) -> Result<(), Problem> {
        let outside = self.inside;
        self.inside = outside.entering(expr);
        self.template.load.repeats |= self.loops > 0 && is_operator(expr);
        if let (true, Expr::Call(call)) = (outside.whole, expr) {
            self.template.load.ranges += range_length(call);
        }
        let done = self.expression_inside(expr);
        self.inside = outside;
        done
    }

    fn expression_inside(&mut self, expr: &Expr<'a>) -> Result<(), Problem> {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.lookup(expr, Use::Plain),
            Expr::BinOp(op) if matches!(op.op, BinOpKind::Mul) => {
                self.factor(&op.left)?;
                self.factor(&op.right)
            }
            Expr::Filter(filter) => {
                known("filter", filter.name, filters::names(), filter.span())?;
                let guard = matches!(filter.name, "default" | "d");
                filter.expr.iter().try_for_each(|inner| self.guarded(inner, guard))?;
                self.arguments(&filter.args)
            }
            Expr::Test(test) => {
                known("test", test.name, filters::tests(), test.span())?;
                self.guarded(&test.expr, matches!(test.name, "defined" | "undefined"))?;
                self.arguments(&test.args)
            }
            Expr::Call(call) => match &call.expr {
                Expr::Var(var) if var.id == "range" => self.arguments(&call.args),
                other => {
                    let message = "only `range` can be called".to_owned();
                    let hint = Some("filters are written with a bar: `value | upper`".to_owned());
                    Err(Problem { message, hint, span: bytes(other.span()) })
                }
            },
            other => parts(other).into_iter().try_for_each(|part| self.expression(part)),
        }
    }

    fn guarded(&mut self, expr: &Expr<'a>, guard: bool) -> Result<(), Problem> {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) if guard => self.lookup(expr, Use::Guarded),
            _ => self.expression(expr),
        }
    }

    fn arguments(&mut self, args: &[CallArg<'a>]) -> Result<(), Problem> {
        args.iter().try_for_each(|arg| match arg {
            CallArg::Pos(expr)
            | CallArg::Kwarg(_, expr)
            | CallArg::PosSplat(expr)
            | CallArg::KwargSplat(expr) => self.expression(expr),
        })
    }

    /// An operand of `*`. It must be a number, since a text or list would be repeated.
    fn factor(&mut self, expr: &Expr<'a>) -> Result<(), Problem> {
        use BinOpKind::{Add, Div, FloorDiv, Mul, Pow, Rem, Sub};
        match expr {
            Expr::Const(constant) if constant.value.is_number() => Ok(()),
            Expr::UnaryOp(_) => self.expression(expr),
            Expr::BinOp(op) if matches!(op.op, Sub | Mul | Div | FloorDiv | Rem | Pow) => {
                self.expression(expr)
            }
            Expr::BinOp(op) if matches!(op.op, Add) => {
                self.factor(&op.left)?;
                self.factor(&op.right)
            }
            Expr::Filter(filter) if filters::GIVES_NUMBER.contains(&filter.name) => self.expression(expr),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.lookup(expr, Use::Factor),
            _ => Err(not_a_number(expr.span())),
        }
    }

    /// A name with what follows it, as far as that is written out.
    fn lookup(&mut self, expr: &Expr<'a>, usage: Use) -> Result<(), Problem> {
        let mut path = Vec::new();
        let mut complete = true;
        let mut at = expr;
        let root = loop {
            match at {
                Expr::Var(var) => break var,
                Expr::GetAttr(get) => {
                    path.push(get.name.to_owned());
                    at = &get.expr;
                }
                Expr::GetItem(get) => {
                    match literal(&get.subscript_expr) {
                        Some(key) => path.push(key),
                        None => {
                            self.expression(&get.subscript_expr)?;
                            path.clear();
                            complete = false;
                        }
                    }
                    at = &get.expr;
                }
                other if usage == Use::Factor => return Err(not_a_number(other.span())),
                other => return self.expression(other),
            }
        };
        self.count(expr.span())?;
        let local = self.locals.contains(&root.id);
        if local && self.inside.built {
            return Err(doubles(root.id, expr.span()));
        }
        self.template.load.locals += usize::from(local && self.inside.whole);
        if usage == Use::Factor && (local || !complete) {
            return Err(not_a_number(expr.span()));
        }
        if !local {
            path.push(root.id.to_owned());
            path.reverse();
            let (guarded, factor) = (usage == Use::Guarded && complete, usage == Use::Factor);
            let span = bytes(root.span()).start..bytes(expr.span()).end;
            let counts = self.inside.counts();
            self.template.references.push(Reference { path, guarded, factor, counts, span });
        }
        Ok(())
    }

    fn count(&mut self, span: Span) -> Result<(), Problem> {
        self.names += 1;
        match self.names > MAX_NAMES {
            true => {
                let message = format!("names can be used at most {MAX_NAMES} times here");
                Err(Problem { message, hint: Some("use a loop".to_owned()), span: bytes(span) })
            }
            false => Ok(()),
        }
    }
}

/// A key or an index that is written out, such as `'a'`, `0` or `-1`.
fn literal(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Const(key) => Some(key.value.to_string()),
        Expr::UnaryOp(op) if matches!(op.expr, Expr::Const(_)) => expr.as_const().map(|key| key.to_string()),
        _ => None,
    }
}

/// The expressions that one of no interest by itself is made of.
fn parts<'e, 'a>(expr: &'e Expr<'a>) -> Vec<&'e Expr<'a>> {
    match expr {
        Expr::UnaryOp(op) => vec![&op.expr],
        Expr::BinOp(op) => vec![&op.left, &op.right],
        Expr::Compare(compare) => {
            [&compare.expr].into_iter().chain(compare.ops.iter().map(|op| &op.expr)).collect()
        }
        Expr::IfExpr(choice) => {
            [&choice.test_expr, &choice.true_expr].into_iter().chain(&choice.false_expr).collect()
        }
        Expr::Slice(slice) => {
            let bounds = [&slice.start, &slice.stop, &slice.step];
            [&slice.expr].into_iter().chain(bounds.into_iter().flatten()).collect()
        }
        Expr::List(list) => list.items.iter().collect(),
        Expr::Tuple(tuple) => tuple.items.iter().collect(),
        Expr::Map(map) => map.keys.iter().chain(&map.values).collect(),
        _ => Vec::new(),
    }
}

/// What a name is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Plain,
    Guarded,
    Factor,
}

fn known(what: &str, name: &str, names: Vec<&'static str>, span: Span) -> Result<(), Problem> {
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let near =
                suggest::nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let hint = near.or_else(|| Some(format!("there are {}", suggest::list(names))));
            Err(Problem { message: format!("there is no {what} `{name}`"), hint, span: bytes(span) })
        }
    }
}

fn doubles(name: &str, span: Span) -> Problem {
    let message =
        format!("a loop cannot iterate over a value built from `{name}`, the variable of an enclosing loop");
    let hint = Some("iterate over the value itself, such as `{% for part in row.parts %}`".to_owned());
    Problem { message, hint, span: bytes(span) }
}

fn not_a_number(span: Span) -> Problem {
    let message = "`*` multiplies numbers only, and this may be something else".to_owned();
    Problem { message, hint: Some("make it a number first: `value | float`".to_owned()), span: bytes(span) }
}

fn bytes(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}
