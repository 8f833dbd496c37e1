//! What is written in a box.

use model::{TaskSpec, TriggerRule};
use serde_json::Value;

/// A longer name is cut short; the tooltip has all of it.
const MAX_NAME_CHARS: usize = 36;

/// The name, short enough for a box.
pub fn short(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME_CHARS - 1).chain(['…']).collect()
}

/// The task's type with what that is about, and its trigger rule where that is not the usual one.
pub fn kind(task: &TaskSpec) -> String {
    match rule(task) {
        Some(rule) => format!("{} · {rule}", plain(task)),
        None => plain(task),
    }
}

/// What a fan-out does for each, how a fan-in puts together, which workflow is started.
fn plain(task: &TaskSpec) -> String {
    let workflow = task.config["workflow"].as_str().filter(|_| task.kind.starts_run());
    match (&task.fan_out, &task.fan_in, workflow) {
        (Some(fan_out), ..) => format!("{} × {}", task.kind, short(&plain(&fan_out.task))),
        (_, Some(fan_in), _) => format!("{} {}", task.kind, named(serde_json::to_value(fan_in.aggregation))),
        (.., Some(workflow)) => format!("{} {}", task.kind, short(workflow)),
        _ => task.kind.to_string(),
    }
}

fn named(word: serde_json::Result<Value>) -> String {
    word.ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn rule(task: &TaskSpec) -> Option<String> {
    let is_usual = task.trigger_rule == TriggerRule::default();
    (!is_usual).then(|| named(serde_json::to_value(task.trigger_rule)))
}

/// How many columns of a fixed-width font a text takes: two for each letter of East Asia and each emoji.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|letter| if is_wide(letter) { 2 } else { 1 }).sum()
}

fn is_wide(letter: char) -> bool {
    matches!(u32::from(letter), 0x1100..0x1160 | 0x2e80..0xa4d0 | 0xac00..0xd7a4 | 0xf900..0xfb00 | 0xff00..0xff61 | 0x1f300..)
}
