//! The measured workflows.

use std::fmt::Write;

use serde_json::{Map, Value};

/// A workflow file, generated for a scenario.
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Tasks that do nothing, one after the other.
pub(crate) fn chain(name: &str, length: usize) -> Written {
    let mut text = format!("name: {name}\ntasks:\n  - {{name: t0, type: noop}}\n");
    for task in 1..length {
        let _ = writeln!(text, "  - {{name: t{task}, type: noop, depends_on: [t{}]}}", task - 1);
    }
    Written { name: name.into(), text }
}

/// Tasks that do nothing, side by side: one for each of the [`items`].
pub(crate) fn wide(name: &str) -> Written {
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

/// The inputs of a fan-out of `size` tasks.
pub(crate) fn items(size: usize) -> Map<String, Value> {
    Map::from_iter([("items".to_owned(), Value::from((0..size).collect::<Vec<usize>>()))])
}

/// A start, two branches, and a join.
pub(crate) fn diamond(name: &str) -> Written {
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

/// The same, without a limit on concurrent tasks.
pub(crate) fn all_at_once(name: &str) -> Written {
    let Written { name, text } = wide(name);
    let text = text.replace("    for_each:", "    max_parallel: 10000\n    for_each:");
    Written { name, text }
}

/// The queue whose tasks workers lease.
pub(crate) const LEASED_QUEUE: &str = "leased";

/// One task that does nothing and that workers lease.
pub(crate) fn leased(name: &str) -> Written {
    let text = format!("name: {name}\ntasks:\n  - {{name: t0, type: noop, queue: {LEASED_QUEUE}}}\n");
    Written { name: name.into(), text }
}

/// Such tasks side by side, all at once: one for each of the [`items`].
pub(crate) fn all_leased(name: &str) -> Written {
    let Written { name, text } = all_at_once(name);
    let text = text.replace("task: {type: noop}", &format!("task: {{type: noop, queue: {LEASED_QUEUE}}}"));
    Written { name, text }
}

/// Programs that do nothing, side by side: one for each of the [`items`].
pub(crate) fn programs(name: &str) -> Written {
    let Written { name, text } = wide(name);
    let text = text.replace("task: {type: noop}", "task: {type: bash, config: {command: 'true'}}");
    Written { name, text }
}

/// A Python program that does nothing, with these packages.
pub(crate) fn python(name: &str, packages: &[&str]) -> Written {
    let requirements = match packages {
        [] => String::new(),
        packages => format!(", requirements: [{}]", packages.join(", ")),
    };
    let text = format!(
        "name: {name}\ntasks:\n  - {{name: start, type: python, config: {{code: pass{requirements}}}}}\n"
    );
    Written { name: name.into(), text }
}

/// Tasks side by side that sleep for an hour.
pub(crate) fn sleepers(name: &str, tasks: usize) -> Written {
    let mut text = format!("name: {name}\ntasks:\n");
    for task in 0..tasks {
        let _ = writeln!(text, "  - {{name: s{task}, type: sleep, config: {{duration: 1h}}}}");
    }
    Written { name: name.into(), text }
}

/// A sleep of a second.
pub(crate) fn nap(name: &str) -> Written {
    Written {
        name: name.into(),
        text: format!("name: {name}\ntasks:\n  - {{name: nap, type: sleep, config: {{duration: 1s}}}}\n"),
    }
}
