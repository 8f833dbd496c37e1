//! The workflows that are measured, written as anyone would write them.

use std::fmt::Write;

/// A workflow file.
pub(super) struct Written {
    pub(super) name: String,
    pub(super) text: String,
}

/// So many tasks that do nothing, one after the other.
pub(super) fn chain(name: &str, length: usize) -> Written {
    let mut text = format!("name: {name}\ntasks:\n  - {{name: t0, type: noop}}\n");
    for task in 1..length {
        let _ = writeln!(text, "  - {{name: t{task}, type: noop, depends_on: [t{}]}}", task - 1);
    }
    Written { name: name.into(), text }
}

/// As many tasks that do nothing as the input says, side by side.
pub(super) fn wide(name: &str) -> Written {
    let text = format!(
        "name: {name}
inputs:
  items: {{type: list}}
tasks:
  - name: spread
    type: fan_out
    for_each: inputs.items
    task: {{type: noop}}
"
    );
    Written { name: name.into(), text }
}
