//! What an expression may cost by the size of the values that it works on.
//!
//! Filters count what they handle while they run. Operators cannot be counted, only the steps. So the syntax shows which
//! values they work on, and a template whose loops do so may take fewer steps the larger these are.

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, CompareOpKind, Expr};
use serde_json::Value;

use super::engine::FUEL;
use super::filters::{GIVES_NUMBER, ITEM};

/// With values up to this size, a template has all its steps.
const SMALL: usize = 1024;
/// What operators may work on in all, each value as often as it is named.
const MAX_OPERAND_BYTES: usize = 4 * 1024 * 1024;
/// The longest list that `range` makes.
const MAX_RANGE: usize = 100_000;
/// Filters that give what goes in or elements of it.
const GIVES_ELEMENTS: [&str; 17] = [
    "d",
    "default",
    "dictsort",
    "first",
    "items",
    "last",
    "lines",
    "list",
    "map",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "split",
    "unique",
];

/// How much of a value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counts {
    /// An operator works on all of it.
    Whole,
    /// A loop goes over it, and so its largest element.
    Element,
    /// Only filters and the output see it, which count by themselves.
    Nothing,
}

/// What an expression is a part of.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Inside {
    /// What a loop goes over.
    pub(super) iterated: bool,
    /// A new value that a loop goes over. With names of other loops in it, it could double with each of them.
    pub(super) built: bool,
    /// Something whose cost depends on the whole value.
    pub(super) whole: bool,
}

impl Inside {
    /// What the parts of the expression are in, if it is in this.
    pub(super) fn entering(self, expr: &Expr<'_>) -> Self {
        match expr {
            Expr::BinOp(op) if matches!(op.op, BinOpKind::Add | BinOpKind::Concat) => {
                Self { built: self.iterated, whole: true, ..self }
            }
            Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => {
                Self { built: self.iterated, whole: self.whole || self.iterated, ..self }
            }
            Expr::Filter(filter) if GIVES_NUMBER.contains(&filter.name) => Self::default(),
            Expr::Filter(filter) if self.iterated && !GIVES_ELEMENTS.contains(&filter.name) => {
                Self { whole: true, ..self }
            }
            Expr::Test(_) | Expr::Call(_) => Self::default(),
            other => Self { whole: self.whole || is_operator(other), ..self },
        }
    }

    pub(super) fn counts(self) -> Counts {
        match self {
            Self { whole: true, .. } => Counts::Whole,
            Self { iterated: true, .. } => Counts::Element,
            _ => Counts::Nothing,
        }
    }
}

/// Whether it does more work the larger its operands are.
pub(super) fn is_operator(expr: &Expr<'_>) -> bool {
    let constant = |expr: &Expr<'_>| matches!(expr, Expr::Const(_));
    let searches = |kind| matches!(kind, CompareOpKind::In | CompareOpKind::NotIn);
    match expr {
        Expr::Slice(_) => true,
        Expr::BinOp(op) => match op.op {
            BinOpKind::Add | BinOpKind::Concat | BinOpKind::In => true,
            BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt => !constant(&op.left) && !constant(&op.right),
            BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => !constant(&op.left) && !constant(&op.right),
            _ => false,
        },
        Expr::Compare(compare) => {
            let free = constant(&compare.expr) || compare.ops.iter().all(|op| constant(&op.expr));
            !free || compare.ops.iter().any(|op| searches(op.op))
        }
        _ => false,
    }
}

/// How many elements a call of `range` gives at most.
pub(super) fn range_length(call: &Call<'_>) -> usize {
    let bound = |arg: &CallArg<'_>| match arg {
        CallArg::Pos(Expr::Const(bound)) => {
            bound.value.as_usize().map_or(MAX_RANGE, |end| end.min(MAX_RANGE))
        }
        _ => MAX_RANGE,
    };
    call.args.iter().map(bound).max().unwrap_or_default()
}

/// What the operators of a template work on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Load {
    /// Whether one of them is in a loop.
    pub(super) repeats: bool,
    /// How often they use names of loops.
    pub(super) locals: usize,
    /// The elements of the lists that they have from `range`.
    pub(super) ranges: usize,
}

impl Load {
    /// The steps that a template may take; none if its values are too large for any.
    pub(super) fn fuel<'v>(
        self,
        source: &str,
        values: impl Iterator<Item = (Counts, &'v Value)>,
    ) -> Option<u64> {
        let (mut total, mut element) = (source.len() + self.ranges * ITEM, 0);
        for (counts, value) in values {
            match counts {
                Counts::Whole => total += size(value, MAX_OPERAND_BYTES),
                Counts::Element => element = element.max(largest(value)),
                Counts::Nothing => {}
            }
            if total > MAX_OPERAND_BYTES {
                return None;
            }
        }
        total = total.saturating_add(self.locals.saturating_mul(element));
        let fuel = if self.repeats { FUEL * SMALL as u64 / total.max(SMALL) as u64 } else { FUEL };
        (total <= MAX_OPERAND_BYTES).then_some(fuel)
    }
}

/// The size of a value, counted up to a limit and little more.
fn size(value: &Value, limit: usize) -> usize {
    let mut total = ITEM;
    match value {
        Value::String(text) => total += text.len(),
        Value::Array(items) => {
            for item in items {
                total += size(item, limit.saturating_sub(total));
                if total > limit {
                    break;
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                total += name.len() + size(field, limit.saturating_sub(total));
                if total > limit {
                    break;
                }
            }
        }
        _ => {}
    }
    total
}

/// The size of the largest element.
fn largest(value: &Value) -> usize {
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or_default();
    match value {
        Value::Array(items) => most(&mut items.iter().map(|item| size(item, MAX_OPERAND_BYTES))),
        Value::Object(fields) => {
            most(&mut fields.iter().map(|(name, field)| name.len() + size(field, MAX_OPERAND_BYTES)))
        }
        other => size(other, MAX_OPERAND_BYTES),
    }
}
