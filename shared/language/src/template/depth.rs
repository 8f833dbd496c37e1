//! How deep a template is nested, judged by its tokens. A tree that is too deep to walk on a thread's stack is never
//! built: the parser limits brackets itself, but not chains such as `1 + 1 + …`, `a.b.c…` and `elif`.

use minijinja::machinery::{Token, tokenize};

use super::syntax::{Problem, syntax};

/// No expression is nested deeper, operators in a row included.
const MAX_DEPTH: usize = 320;
/// No template has more of them.
const MAX_ELIFS: usize = 100;

/// Refuses a template, or an expression without braces, that is nested too deep. What cannot be read passes: the
/// parser says it better.
pub(super) fn check(source: &str, in_expression: bool) -> Result<(), Problem> {
    let mut depth = Depth::default();
    for (token, span) in tokenize(source, in_expression, syntax()).map_while(Result::ok) {
        depth.take(&token);
        if depth.total() > MAX_DEPTH || depth.elifs > MAX_ELIFS {
            let what = if in_expression { "expression" } else { "template" };
            let message =
                format!("the {what} is not valid: it is nested too deeply, or chains too many operations");
            let hint = Some("split it, or compute parts of it in tasks of their own".to_owned());
            let span = span.start_offset as usize..span.end_offset as usize;
            return Err(Problem { message, hint, span });
        }
    }
    Ok(())
}

/// The brackets around the present token, from the outermost to the innermost.
#[derive(Default)]
struct Depth {
    around: Vec<Level>,
    /// The depth of nesting.
    outer: usize,
    level: Level,
    elifs: usize,
}

/// What stands between two brackets. Each number is at least as large as in the tree.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators since the last comma.
    operators: usize,
    /// Dots, filters and brackets after the last operator.
    suffixes: usize,
    /// The most suffixes after one operator.
    most: usize,
    /// The deepest part before the last comma.
    before: usize,
}

impl Depth {
    fn total(&self) -> usize {
        self.outer + self.level.depth()
    }

    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::VariableStart | Token::BlockStart => *self = Self { elifs: self.elifs, ..Self::default() },
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => self.enter(),
            Token::BracketClose | Token::ParenClose | Token::BraceClose => self.leave(),
            Token::Comma => self.level = Level { before: self.level.depth(), ..Level::default() },
            Token::Dot | Token::Pipe => self.level.suffix(1),
            Token::Ident("elif") => self.elifs += 1,
            Token::Ident("and" | "or" | "not" | "in" | "is" | "if" | "else") => self.level.operator(),
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::FloorDiv | Token::Pow => {
                self.level.operator();
            }
            Token::Mod | Token::Tilde | Token::Eq | Token::Ne => self.level.operator(),
            Token::Gt | Token::Gte | Token::Lt | Token::Lte => self.level.operator(),
            _ => {}
        }
    }

    fn enter(&mut self) {
        self.level.suffix(1);
        self.outer += self.level.depth();
        self.around.push(std::mem::take(&mut self.level));
    }

    fn leave(&mut self) {
        let inner = self.level.depth();
        self.level = self.around.pop().unwrap_or_default();
        self.outer = self.outer.saturating_sub(self.level.depth());
        self.level.suffix(inner);
    }
}

impl Level {
    fn depth(&self) -> usize {
        self.before.max(self.operators + self.most)
    }

    fn suffix(&mut self, depth: usize) {
        self.suffixes += depth;
        self.most = self.most.max(self.suffixes);
    }

    fn operator(&mut self) {
        self.operators += 1;
        self.suffixes = 0;
    }
}
