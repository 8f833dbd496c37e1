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

/// A start, two branches, and a join.
pub(super) fn diamond(name: &str) -> Written {
    let text = format!(
        "name: {name}
tasks:
  - {{name: start, type: noop}}
  - {{name: left, type: noop, depends_on: [start]}}
  - {{name: right, type: noop, depends_on: [start]}}
  - {{name: join, type: noop, depends_on: [left, right]}}
"
    );
    Written { name: name.into(), text }
}

/// As many tasks as the input says, all of which may go on at once.
pub(super) fn all_at_once(name: &str) -> Written {
    let Written { name, text } = wide(name);
    let text = text.replace("    for_each:", "    max_parallel: 10000\n    for_each:");
    Written { name, text }
}

/// So many tasks side by side that sleep for an hour.
pub(super) fn sleepers(name: &str, tasks: usize) -> Written {
    let mut text = format!("name: {name}\ntasks:\n");
    for task in 0..tasks {
        let _ = writeln!(text, "  - {{name: s{task}, type: sleep, config: {{duration: 1h}}}}");
    }
    Written { name: name.into(), text }
}

/// A sleep of a second.
pub(super) fn nap(name: &str) -> Written {
    Written {
        name: name.into(),
        text: format!("name: {name}\ntasks:\n  - {{name: nap, type: sleep, config: {{duration: 1s}}}}\n"),
    }
}
