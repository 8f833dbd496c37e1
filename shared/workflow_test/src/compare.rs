//! Compares values with expectations and reports each difference at the position of the expectation.

use chrono::TimeDelta;
use language::document::{Data, Node, Report};
use serde_json::{Map, Number, Value};

/// Longer values are cut in messages.
const MAX_SHOWN_CHARS: usize = 200;

/// How much of a value an expectation covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All fields must be equal.
    Whole,
    /// The named fields of each mapping.
    Named,
}

/// Reports every difference between a value and its expectation.
pub(crate) fn compare(expected: &Node, found: &Value, extent: Extent, report: &mut Report<'_>) {
    match (&expected.data, found) {
        (Data::Map(_), Value::Object(found)) => compare_maps(expected, found, extent, report),
        (Data::List(items), Value::Array(found)) => {
            for (item, found) in items.iter().zip(found) {
                compare(item, found, extent, report);
            }
            if items.len() != found.len() {
                let message = format!("expected a list of {}, found one of {}", items.len(), found.len());
                let more = found.get(items.len()).map(|next| format!("the next is {}", show(next)));
                report.add(&expected.at, message, more);
            }
        }
        (Data::Number(expected), Value::Number(found)) if is_same(expected, found) => {}
        _ if expected.to_json() == *found => {}
        _ => differ(expected, found, report),
    }
}

fn compare_maps(expected: &Node, found: &Map<String, Value>, extent: Extent, report: &mut Report<'_>) {
    let Data::Map(entries) = &expected.data else { return };
    for (key, node) in entries {
        match found.get(&key.name) {
            Some(found) => compare(node, found, extent, report),
            None => {
                report.add(&key.at, format!("expected {}, found no such field", show(&node.to_json())), None)
            }
        }
    }
    if extent == Extent::Named {
        return;
    }
    for (name, value) in found.iter().filter(|(name, _)| entries.iter().all(|(key, _)| key.name != **name)) {
        let message = format!("found an unexpected field `{name}`: {}", show(value));
        report.add(&expected.at, message, None);
    }
}

fn differ(expected: &Node, found: &Value, report: &mut Report<'_>) {
    report.add(&expected.at, format!("expected {}, found {}", show(&expected.to_json()), show(found)), None);
}

/// `1` and `1.0` are the same number.
fn is_same(one: &Number, other: &Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
}

/// A value for people.
fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A duration as written in test files: `1h30m`.
pub(crate) fn span(span: TimeDelta) -> String {
    let milliseconds = span.num_milliseconds();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)];
    let mut rest = milliseconds;
    let mut text = String::new();
    for (unit, worth) in units {
        if rest >= worth {
            text += &format!("{}{unit}", rest / worth);
            rest %= worth;
        }
    }
    match rest {
        0 if !text.is_empty() => text,
        _ => format!("{text}{}s", rest as f64 / 1_000.0),
    }
}
