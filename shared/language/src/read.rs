//! Typed values out of a tree. What does not fit is reported, and reading goes on.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::Report;
use crate::node::{Data, Key, Node, Position};
use crate::shape::Shape;
use crate::suggest;

/// A text and where it was written.
#[derive(Clone, Copy, Debug)]
pub struct Word<'n> {
    /// The text itself, without its position.
    pub text: &'n str,
    /// Where it was written.
    pub at: &'n Position,
}

/// A mapping that is read field by field: a field that nobody asked for is unknown.
pub struct Fields<'n> {
    pub(crate) at: &'n Position,
    entries: &'n [(Key, Node)],
    known: Vec<&'static str>,
    refused: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The fields of `node`, which is `what`; anything but a mapping is reported.
    pub fn of(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<Self> {
        let entries = entries(node, what, report)?;
        let (known, refused, missing) = Default::default();
        Some(Self { at: &node.at, entries, known, refused, missing })
    }

    /// The value of a field, read by its shape. A field that holds nothing counts as absent.
    pub fn take<S: Shape<'n>>(
        &mut self,
        name: &'static str,
        shape: &S,
        report: &mut Report<'_>,
    ) -> Option<S::Value> {
        if self.refused.contains(&name) {
            return None;
        }
        self.known.push(name);
        match self.peek(name).filter(|node| shape.takes_null() || !node.is_null()) {
            Some(node) => shape.read(node, report),
            None => {
                self.missing.extend(shape.is_required().then_some(name));
                None
            }
        }
    }

    /// Reports the absence of a field in the end.
    pub(crate) fn require(&mut self, name: &'static str) {
        if self.peek(name).is_none_or(Node::is_null) {
            self.missing.push(name);
        }
    }

    /// The value of a field, which stays unread.
    pub(crate) fn peek(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Refuses a field that would fit elsewhere; it is not read any more.
    pub(crate) fn refuse(&mut self, name: &'static str, message: &str, hint: &str, report: &mut Report<'_>) {
        self.refused.push(name);
        if let Some((key, _)) = self.entries.iter().find(|(key, _)| key.name == name) {
            report.add(&key.at, message, Some(hint.to_owned()));
        }
    }

    /// Reports every unknown field and every missing one. Returns whether a field was unknown.
    pub fn finish(self, report: &mut Report<'_>) -> bool {
        let Self { at, entries, known, refused, mut missing } = self;
        let is_known = |key: &Key| known.contains(&key.name.as_str());
        let written: BTreeSet<&str> =
            entries.iter().filter(|(key, _)| is_known(key)).map(|(key, _)| key.name.as_str()).collect();
        // A field that is missing is the more probable one.
        let absent = known.iter().filter(|name| !written.contains(*name) && !missing.contains(name));
        let absent: Vec<&str> = absent.copied().collect();
        let mut found = false;
        for (key, _) in entries {
            if is_known(key) || refused.contains(&key.name.as_str()) {
                continue;
            }
            found = true;
            let needed = report.budget.nearest(&key.name, missing.iter().copied());
            let near = needed.or_else(|| report.budget.nearest(&key.name, absent.iter().copied()));
            // The misspelt field is not missing as well.
            missing.retain(|name| Some(*name) != needed);
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", suggest::list(known.iter().copied())),
            };
            report.add(&key.at, format!("unknown field `{}`", key.name), Some(hint));
        }
        missing.iter().for_each(|name| report.add(at, format!("the field `{name}` is missing"), None));
        found
    }
}

/// A text that is not empty.
pub(crate) fn text<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
    match &node.data {
        Data::Text(text) if !text.is_empty() => Some(Word { text, at: &node.at }),
        Data::Bool(_) | Data::Number(_) => {
            let hint = format!("put it in quotes: \"{}\"", node.to_json());
            expected("a text", node, Some(hint), report)
        }
        _ => expected("a text", node, None, report),
    }
}

/// An expression, which may be as short as `true`.
pub(crate) fn expression<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
    match &node.data {
        Data::Bool(flag) => Some(Word { text: if *flag { "true" } else { "false" }, at: &node.at }),
        _ => text(node, report),
    }
}

/// A list of anything.
pub(crate) fn list<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<&'n [Node]> {
    match &node.data {
        Data::List(items) => Some(items),
        Data::Text(text) => expected("a list", node, Some(format!("write [{text}]")), report),
        Data::Map(_) => expected("a list", node, Some("begin each entry with `- `".to_owned()), report),
        _ => expected("a list", node, None, report),
    }
}

/// The entries of a list, or a single value instead of it.
pub(crate) fn each(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// The entries of a mapping, which is `what`; anything else is reported.
pub(crate) fn entries<'n>(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<&'n [(Key, Node)]> {
    match &node.data {
        Data::Map(entries) => Some(entries),
        _ => {
            let message = format!("{what} must be a mapping, but this is {}", node.describe());
            report.add(&node.at, message, None);
            None
        }
    }
}

/// Reads `true` or `false`.
pub(crate) fn flag(node: &Node, report: &mut Report<'_>) -> Option<bool> {
    let hint = match &node.data {
        Data::Bool(flag) => return Some(*flag),
        Data::Text(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" | "true" => Some("write `true`, without quotes".to_owned()),
            "no" | "off" | "n" | "false" => Some("write `false`, without quotes".to_owned()),
            _ => None,
        },
        _ => None,
    };
    expected("`true` or `false`", node, hint, report)
}

/// A whole number within a range.
pub(crate) fn whole(node: &Node, range: RangeInclusive<u32>, report: &mut Report<'_>) -> Option<u32> {
    as_whole(node, &range).or_else(|| out_of("a whole number", &range, "", node, report))
}

/// A whole number within a range, where another kind of value is allowed too.
pub(crate) fn whole_or(
    node: &Node,
    range: RangeInclusive<u32>,
    other: &str,
    report: &mut Report<'_>,
) -> Option<u32> {
    let other = format!(" or {other}");
    as_whole(node, &range).or_else(|| out_of("a whole number", &range, &other, node, report))
}

fn as_whole(node: &Node, range: &RangeInclusive<u32>) -> Option<u32> {
    let number = match &node.data {
        Data::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        _ => None,
    };
    number.filter(|number| range.contains(number))
}

/// A whole number within a range that may be below zero.
pub(crate) fn signed(node: &Node, range: RangeInclusive<i32>, report: &mut Report<'_>) -> Option<i32> {
    let number = match &node.data {
        Data::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
        _ => None,
    };
    number
        .filter(|number| range.contains(number))
        .or_else(|| out_of("a whole number", &range, "", node, report))
}

/// A number within a range.
pub(crate) fn number(node: &Node, range: RangeInclusive<f64>, report: &mut Report<'_>) -> Option<f64> {
    let number = match &node.data {
        Data::Number(number) => number.as_f64(),
        _ => None,
    };
    number.filter(|number| range.contains(number)).or_else(|| out_of("a number", &range, "", node, report))
}

/// One of a few words, each of which is a value of `T` in its serialized form.
pub(crate) fn choice<T: DeserializeOwned>(node: &Node, words: &[&str], report: &mut Report<'_>) -> Option<T> {
    let word = text(node, report)?;
    let value =
        words.contains(&word.text).then(|| serde_json::from_value(Value::from(word.text)).ok()).flatten();
    if value.is_none() {
        let hint = report.suggest(word.text, words.iter().copied());
        report.add(word.at, format!("`{}` is not one of the values allowed here", word.text), hint);
    }
    value
}

fn expected<T>(what: &str, node: &Node, hint: Option<String>, report: &mut Report<'_>) -> Option<T> {
    report.add(&node.at, format!("expected {what}, found {}", node.describe()), hint);
    None
}

fn out_of<T, N: Display>(
    what: &str,
    range: &RangeInclusive<N>,
    other: &str,
    node: &Node,
    report: &mut Report<'_>,
) -> Option<T> {
    let hint = match &node.data {
        Data::Text(text) if text.parse::<f64>().is_ok() => {
            Some("write it without quotes or leading zeros".to_owned())
        }
        _ => None,
    };
    expected(&format!("{what} from {} to {}{other}", range.start(), range.end()), node, hint, report)
}
