//! The kinds of values, from a text to a list of records.

use std::ops::RangeInclusive;

use model::Instant;
use model::instant::{self, InvalidInstant};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Record, Shape, refer};
use crate::diagnostic::Report;
use crate::duration::Duration;
use crate::names::{self, MAX_CHARS, Rule};
use crate::node::{Data, Key, Node, Position};
use crate::read::{self, Word};

/// The pattern of `1h30m` and its like, or of a number of seconds.
pub(crate) const DURATION: &str =
    r"^\s*(\+?[0-9.]+([eE][+-]?[0-9]+)?|([0-9.]+d)?([0-9.]+h)?([0-9.]+m)?([0-9.]+s)?)\s*$";
/// Durations that an editor offers.
pub(crate) const DURATIONS: [&str; 4] = ["30s", "5m", "1h30m", "2d"];

/// A shape made of its two halves.
struct Described<R, S> {
    read: R,
    schema: S,
}

impl<'n, T, R, S> Shape<'n> for Described<R, S>
where
    R: Fn(&'n Node, &mut Report<'_>) -> Option<T>,
    S: Fn() -> Value,
{
    type Value = T;

    fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<T> {
        (self.read)(node, report)
    }

    fn schema(&self) -> Value {
        (self.schema)()
    }
}

/// A value with a reader of its own and the JSON Schema that goes with it.
pub(crate) fn custom<'n, T>(
    read: impl Fn(&'n Node, &mut Report<'_>) -> Option<T>,
    schema: impl Fn() -> Value,
) -> impl Shape<'n, Value = T> {
    Described { read, schema }
}

/// A value that is read later, since its reader needs to know more than the value.
pub(crate) fn node<'n>(schema: impl Fn() -> Value) -> impl Shape<'n, Value = &'n Node> {
    custom(|node, _| Some(node), schema)
}

/// Any value, which is read later.
pub(crate) fn any<'n>() -> impl Shape<'n, Value = &'n Node> {
    node(|| json!({}))
}

/// A text that is not empty.
pub(crate) fn text<'n>() -> impl Shape<'n, Value = Word<'n>> {
    custom(read::text, || json!({"type": "string", "minLength": 1}))
}

/// A text that is a template.
pub(crate) fn template<'n>() -> impl Shape<'n, Value = Word<'n>> {
    custom(read::text, crate::json_schema::template)
}

/// An expression, which may be as short as `true`.
pub(crate) fn expression<'n>() -> impl Shape<'n, Value = Word<'n>> {
    custom(read::expression, || json!({"type": ["string", "boolean"], "minLength": 1}))
}

/// A name that follows a rule.
pub(crate) fn name<'n>(rule: &'static Rule) -> impl Shape<'n, Value = Word<'n>> {
    custom(
        |node, report| {
            let name = read::text(node, report)?;
            names::check(name, rule, report);
            Some(name)
        },
        || json!({"type": "string", "pattern": rule.pattern, "maxLength": MAX_CHARS}),
    )
}

/// The value `true` or `false`.
pub(crate) fn flag<'n>() -> impl Shape<'n, Value = bool> {
    custom(read::flag, || json!({"type": "boolean"}))
}

/// A whole number within a range.
pub(crate) fn whole<'n>(range: RangeInclusive<u32>) -> impl Shape<'n, Value = u32> {
    let schema = bounds("integer", &range);
    custom(move |node, report| read::whole(node, range.clone(), report), schema)
}

/// A whole number within a range that may be below zero.
pub(crate) fn signed<'n>(range: RangeInclusive<i32>) -> impl Shape<'n, Value = i32> {
    let schema = bounds("integer", &range);
    custom(move |node, report| read::signed(node, range.clone(), report), schema)
}

/// A number within a range.
pub(crate) fn number<'n>(range: RangeInclusive<f64>) -> impl Shape<'n, Value = f64> {
    let schema = bounds("number", &range);
    custom(move |node, report| read::number(node, range.clone(), report), schema)
}

fn bounds<N: Copy + Into<Value>>(
    kind: &'static str,
    range: &RangeInclusive<N>,
) -> impl Fn() -> Value + use<N> {
    let (minimum, maximum) = (*range.start(), *range.end());
    move || {
        let (minimum, maximum): (Value, Value) = (minimum.into(), maximum.into());
        json!({"type": kind, "minimum": minimum, "maximum": maximum})
    }
}

/// One of a few words, each of which is a value of `T` in its serialized form.
pub(crate) fn choice<'n, T: DeserializeOwned>(
    words: impl AsRef<[&'static str]>,
) -> impl Shape<'n, Value = T> {
    let schema = json!({"type": "string", "enum": words.as_ref()});
    custom(move |node, report| read::choice(node, words.as_ref(), report), move || schema.clone())
}

/// A length of time, such as `30s`, or a number of seconds.
pub(crate) fn duration<'n>() -> impl Shape<'n, Value = Duration> {
    let schema = || {
        json!({
            "type": ["string", "number"], "pattern": DURATION, "minLength": 1, "minimum": 0, "examples": DURATIONS,
        })
    };
    let read = |node: &Node, report: &mut Report<'_>| {
        let duration = serde_json::from_value::<Duration>(node.to_json());
        duration.map_err(|problem| report.add(&node.at, problem.to_string(), None)).ok()
    };
    custom(read, schema)
}

/// An instant, RFC 3339.
pub(crate) fn timestamp<'n>() -> impl Shape<'n, Value = Instant> {
    let schema = || {
        json!({
            "type": "string", "pattern": r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", "examples": ["2026-01-31T06:00:00Z"],
        })
    };
    let read = |node: &Node, report: &mut Report<'_>| {
        let instant = match &node.data {
            Data::Text(text) => instant::parse(text.trim()),
            _ => Err(InvalidInstant::Format(String::new())),
        };
        let hint = Some("for example 2026-01-31T06:00:00Z".to_owned());
        let invalid = |error| match error {
            InvalidInstant::Format(_) => format!("expected an instant, found {}", node.describe()),
            year => year.to_string(),
        };
        instant.map_err(|error| report.add(&node.at, invalid(error), hint)).ok()
    };
    custom(read, schema)
}

/// A list of such values; those that do not fit are reported and left out.
pub(crate) fn list<'n, T>(of: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = Vec<T>> {
    Items { of, alone: false, least: 0 }
}

/// One such value, or a list of them.
pub(crate) fn several<'n, T>(of: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = Vec<T>> {
    Items { of, alone: true, least: 0 }
}

/// One such value, or a list of at least one.
pub(crate) fn one_or_more<'n, T>(of: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = Vec<T>> {
    Items { of, alone: true, least: 1 }
}

struct Items<S> {
    of: S,
    /// Whether one value may stand without a list around it.
    alone: bool,
    /// The minimum length; the record that has the list reports a shorter one.
    least: u32,
}

impl<'n, S: Shape<'n>> Shape<'n> for Items<S> {
    type Value = Vec<S::Value>;

    fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<Self::Value> {
        let items = if self.alone { read::each(node) } else { read::list(node, report)? };
        Some(items.iter().filter_map(|item| self.of.read(item, report)).collect())
    }

    fn schema(&self) -> Value {
        let one = self.of.schema();
        let mut list = json!({"type": "array"});
        if one != json!({}) {
            list["items"] = one.clone();
        }
        if self.least > 0 {
            list["minItems"] = self.least.into();
        }
        if self.alone { json!({"anyOf": [one, list]}) } else { list }
    }
}

/// A mapping whose keys somebody chose.
pub(crate) fn entries<'n>(what: &'static str) -> impl Shape<'n, Value = &'n [(Key, Node)]> {
    custom(move |node, report| read::entries(node, what, report), || json!({"type": "object"}))
}

/// A mapping with the fields of a record.
pub(crate) fn record<'n, T: Record<'n>>() -> impl Shape<'n, Value = T> {
    custom(T::read, T::schema)
}

/// A shape that the JSON Schema defines once, under a name.
pub(crate) fn defined<'n, T>(
    name: &'static str,
    shape: impl Shape<'n, Value = T>,
) -> impl Shape<'n, Value = T> {
    custom(move |node, report| shape.read(node, report), move || refer(name))
}

/// A shape, with the value that an absent field stands for.
pub(crate) fn with_default<'n, T, D: Clone + Into<Value>>(
    shape: impl Shape<'n, Value = T>,
    default: D,
) -> impl Shape<'n, Value = T> {
    struct WithDefault<S>(S, Value);
    impl<'n, S: Shape<'n>> Shape<'n> for WithDefault<S> {
        type Value = S::Value;

        fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<Self::Value> {
            self.0.read(node, report)
        }

        fn schema(&self) -> Value {
            let mut schema = self.0.schema();
            schema["default"] = self.1.clone();
            schema
        }
    }
    WithDefault(shape, default.into())
}

/// A value that was written, and where, whether or not it could be read.
#[derive(Clone, Copy, Debug)]
pub struct Given<'n, T> {
    /// Where it was written.
    pub at: &'n Position,
    /// The value, unless it does not fit, which was reported.
    pub value: Option<T>,
}

/// A shape whose position is of use too.
pub(crate) fn given<'n, T>(shape: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = Given<'n, T>> {
    struct Located<S>(S);
    impl<'n, S: Shape<'n>> Shape<'n> for Located<S> {
        type Value = Given<'n, S::Value>;

        fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<Self::Value> {
            Some(Given { at: &node.at, value: self.0.read(node, report) })
        }

        fn schema(&self) -> Value {
            self.0.schema()
        }
    }
    Located(shape)
}

/// A field that its record needs.
pub(crate) fn required<'n, T>(shape: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = T> {
    Presence { shape, is_required: true, takes_null: false }
}

/// A field in which `null` is a value.
pub(crate) fn nullable<'n, T>(shape: impl Shape<'n, Value = T>) -> impl Shape<'n, Value = T> {
    Presence { shape, is_required: false, takes_null: true }
}

struct Presence<S> {
    shape: S,
    is_required: bool,
    takes_null: bool,
}

impl<'n, S: Shape<'n>> Shape<'n> for Presence<S> {
    type Value = S::Value;

    fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<Self::Value> {
        self.shape.read(node, report)
    }

    fn schema(&self) -> Value {
        self.shape.schema()
    }

    fn is_required(&self) -> bool {
        self.is_required
    }

    fn takes_null(&self) -> bool {
        self.takes_null
    }
}
