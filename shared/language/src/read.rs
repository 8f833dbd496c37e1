//! Typed values out of a tree. What does not fit is reported, and reading goes on.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::Report;
use crate::node::{Data, Key, Node, Place};
use crate::suggest;

/// A text and where it was written.
#[derive(Clone, Copy, Debug)]
pub struct Word<'n> {
    /// The text.
    pub text: &'n str,
    /// Where it was written.
    pub at: &'n Place,
}

/// A mapping that is read field by field: a field that nobody asked for is unknown.
pub struct Fields<'n> {
    pub(crate) at: &'n Place,
    entries: &'n [(Key, Node)],
    asked: Vec<&'static str>,
    refused: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The fields of `node`, which is `what`; something else than a mapping is reported.
    pub fn of(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<Self> {
        match &node.data {
            Data::Map(entries) => {
                let (asked, refused, missing) = Default::default();
                Some(Self { at: &node.at, entries, asked, refused, missing })
            }
            _ => {
                report.add(
                    &node.at,
                    format!("{what} must be a mapping, but this is {}", node.describe()),
                    None,
                );
                None
            }
        }
    }

    /// The field of that name; one that holds nothing counts as absent.
    pub fn get(&mut self, name: &'static str) -> Option<&'n Node> {
        self.get_or_null(name).filter(|node| !node.is_null())
    }

    /// The field of that name, also where it holds nothing.
    pub fn get_or_null(&mut self, name: &'static str) -> Option<&'n Node> {
        self.asked.push(name);
        self.peek(name)
    }

    /// The field of that name, without asking for it.
    pub(crate) fn peek(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Whether the field is written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// The field of that name; its absence is reported in the end.
    pub fn require(&mut self, name: &'static str) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            self.missing.push(name);
        }
        found
    }

    /// A field that would fit elsewhere, with what to say if it stands here.
    pub(crate) fn refuse(&mut self, name: &'static str, message: &str, hint: &str, report: &mut Report<'_>) {
        self.refused.push(name);
        if let Some((key, _)) = self.entries.iter().find(|(key, _)| key.name == name) {
            report.add(&key.at, message, Some(hint.to_owned()));
        }
    }

    /// Reports every field that was not asked for, and every one that is missing; whether there was one of the
    /// first kind.
    pub fn finish(self, report: &mut Report<'_>) -> bool {
        let mut found = false;
        let Self { at, entries, asked, refused, mut missing } = self;
        let written = |name: &str| entries.iter().any(|(key, _)| key.name == name);
        let strange = entries
            .iter()
            .map(|(key, _)| key)
            .filter(|key| !asked.contains(&key.name.as_str()) && !refused.contains(&key.name.as_str()));
        for key in strange {
            let near = suggest::nearest(&key.name, asked.iter().copied().filter(|name| !written(name)));
            // What was misspelt is not missing as well.
            missing.retain(|name| Some(*name) != near);
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", suggest::list(asked.iter().copied())),
            };
            report.add(&key.at, format!("unknown field `{}`", key.name), Some(hint));
            found = true;
        }
        missing.iter().for_each(|name| report.add(at, format!("the field `{name}` is missing"), None));
        found
    }
}

/// A text that is not empty.
pub fn text<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
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

/// A list of texts.
pub fn texts<'n>(node: &'n Node, report: &mut Report<'_>) -> Vec<Word<'n>> {
    let items = list(node, report).unwrap_or_default();
    items.iter().filter_map(|item| text(item, report)).collect()
}

/// A list of anything.
pub fn list<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<&'n [Node]> {
    match &node.data {
        Data::List(items) => Some(items),
        Data::Text(text) => expected("a list", node, Some(format!("write [{text}]")), report),
        Data::Map(_) => expected("a list", node, Some("begin each entry with `- `".to_owned()), report),
        _ => expected("a list", node, None, report),
    }
}

/// The entries of a list, or the one thing that stands in its place.
pub(crate) fn each(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Whether a text can be a URL for HTTP.
pub(crate) fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The entries of a mapping whose keys are names that somebody chose.
pub fn entries<'n>(node: &'n Node, what: &str, report: &mut Report<'_>) -> &'n [(Key, Node)] {
    Fields::of(node, what, report).map_or(&[], |fields| fields.entries)
}

/// `true` or `false`.
pub fn flag(node: &Node, report: &mut Report<'_>) -> Option<bool> {
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
pub fn whole(node: &Node, range: RangeInclusive<u32>, report: &mut Report<'_>) -> Option<u32> {
    as_whole(node, &range).or_else(|| out_of("a whole number", &range, "", node, report))
}

/// A whole number within a range, where something else may stand in its place.
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
pub fn choice<T: DeserializeOwned>(node: &Node, words: &[&str], report: &mut Report<'_>) -> Option<T> {
    let word = text(node, report)?;
    let value =
        words.contains(&word.text).then(|| serde_json::from_value(Value::from(word.text)).ok()).flatten();
    if value.is_none() {
        let hint = suggest::hint(word.text, words.iter().copied());
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
