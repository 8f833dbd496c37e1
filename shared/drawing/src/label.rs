//! What is written in a box.

use model::{TaskSpec, TriggerRule};

/// A longer name is cut short; the tooltip has all of it.
const LONGEST: usize = 36;

/// The name, short enough for a box.
pub(crate) fn short(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// The task's type, and its trigger rule where that is not the usual one.
pub(crate) fn kind(task: &TaskSpec) -> String {
    match rule(task) {
        Some(rule) => format!("{} · {rule}", task.kind),
        None => task.kind.clone(),
    }
}

fn rule(task: &TaskSpec) -> Option<String> {
    let name = serde_json::to_value(task.trigger_rule).expect("a rule is written as its name");
    let is_usual = task.trigger_rule == TriggerRule::default();
    name.as_str().filter(|_| !is_usual).map(str::to_owned)
}

/// How many columns of a fixed-width font a text takes: two for each letter of East Asia and each emoji.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|letter| if is_wide(letter) { 2 } else { 1 }).sum()
}

fn is_wide(letter: char) -> bool {
    matches!(u32::from(letter), 0x1100..0x1160 | 0x2e80..0xa4d0 | 0xac00..0xd7a4 | 0xf900..0xfb00 | 0xff00..0xff61 | 0x1f300..)
}
