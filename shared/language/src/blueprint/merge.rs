//! A file laid over the template that it extends.

use std::collections::BTreeMap;
use std::mem;

use super::field;
use crate::diagnostic::Report;
use crate::node::{Data, Key, Node};
use crate::read::Word;
use crate::shape::{Record, flag, record, required, text};

/// What belongs to a task's type: with another type, none of it makes sense.
const OF_TYPE: [&str; 9] = [
    "type",
    "task",
    "config",
    "cases",
    "for_each",
    "max_parallel",
    "tolerated_failures",
    "aggregation",
    "field",
];

/// `upper` laid over `lower`, both without what belongs to their files alone.
pub(super) fn workflow(lower: Node, upper: Node, report: &mut Report<'_>) -> Node {
    over(lower, upper, &mut |name, lower, upper| match name {
        "tasks" => tasks(lower, upper, report),
        // Down to the fields of an input, and to those of a retry policy.
        "inputs" | "defaults" => by_key(lower, upper, 2),
        _ => upper,
    })
}

fn tasks(mut lower: Node, upper: Node, report: &mut Report<'_>) -> Node {
    let Node { data: Data::List(own), at } = upper else { return upper };
    let Data::List(inherited) = &mut lower.data else { return Node { data: Data::List(own), at } };
    let mut tasks: Vec<Option<Node>> = mem::take(inherited).into_iter().map(Some).collect();
    let named = |(index, task): (usize, &Option<Node>)| Some((name(task.as_ref()?)?.to_owned(), index));
    // The first of a name is meant; a second one is a mistake that is reported with all others of its kind.
    let mut places: BTreeMap<String, usize> = tasks.iter().enumerate().rev().filter_map(named).collect();
    for entry in own {
        let is_removal = matches!(field(&entry, "remove"), Some(Node { data: Data::Bool(true), .. }));
        if is_removal {
            if let Some(index) = removed(&entry, &mut places, report) {
                tasks[index] = None;
            }
            continue;
        }
        match name(&entry).and_then(|name| places.remove(name)) {
            Some(index) => tasks[index] = tasks[index].take().map(|inherited| task(inherited, entry)),
            None => tasks.push(Some(entry)),
        }
    }
    Node { data: Data::List(tasks.into_iter().flatten().collect()), at }
}

record! {
    /// An entry that removes an inherited task.
    struct Removal<'n> as "a task" {
        /// The task to remove.
        name: Word<'n> = required(text()),
        /// Removes the task of this name.
        remove: bool = flag(),
    }
}

/// The inherited task that an entry removes.
fn removed(entry: &Node, places: &mut BTreeMap<String, usize>, report: &mut Report<'_>) -> Option<usize> {
    let name = Removal::read(entry, report)?.name?;
    let index = places.remove(name.text);
    if index.is_none() {
        let hint = report.suggest(name.text, places.keys().map(String::as_str));
        report.add(name.at, format!("there is no task `{}` to remove", name.text), hint);
    }
    index
}

/// A task, or the task within a fan-out.
fn task(mut lower: Node, upper: Node) -> Node {
    if let Data::Map(entries) = &mut lower.data
        && (differs(entries, &upper, "type") || differs(entries, &upper, "task"))
    {
        entries.retain(|(key, _)| !OF_TYPE.contains(&key.name.as_str()));
    }
    over(lower, upper, &mut |name, lower, upper| match name {
        "config" | "retry_policy" => by_key(lower, upper, 1),
        "task" => task(lower, upper),
        _ => upper,
    })
}

/// Whether the upper one names something else than the lower one under that key.
fn differs(lower: &[(Key, Node)], upper: &Node, name: &str) -> bool {
    let Some(Node { data: Data::Text(new), .. }) = field(upper, name) else { return false };
    let old = lower.iter().find(|(key, _)| key.name == name).map(|(_, node)| &node.data);
    !matches!(old, Some(Data::Text(old)) if old == new)
}

/// Merges mappings down to a number of levels; of anything else, the upper one wins.
fn by_key(lower: Node, upper: Node, depth: u32) -> Node {
    match depth {
        0 => upper,
        _ => over(lower, upper, &mut |_, lower, upper| by_key(lower, upper, depth - 1)),
    }
}

/// Two mappings as one: values of the same key are combined, and a null in the upper one removes the key. Of anything
/// else, the upper value stands.
fn over(lower: Node, upper: Node, combine: &mut dyn FnMut(&str, Node, Node) -> Node) -> Node {
    let (Data::Map(entries), Data::Map(more)) = (lower.data, &upper.data) else { return upper };
    let indices: BTreeMap<String, usize> =
        entries.iter().enumerate().rev().map(|(index, (key, _))| (key.name.clone(), index)).collect();
    let mut entries: Vec<Option<(Key, Node)>> = entries.into_iter().map(Some).collect();
    for (key, node) in more.iter().cloned() {
        match indices.get(&key.name) {
            Some(index) if node.is_null() => entries[*index] = None,
            Some(index) => {
                let lower = entries[*index].take();
                let combined = lower.map(|(_, lower)| combine(&key.name, lower, node));
                entries[*index] = combined.map(|combined| (key, combined));
            }
            None => entries.push(Some((key, node))),
        }
    }
    Node { data: Data::Map(entries.into_iter().flatten().collect()), at: upper.at }
}

/// What a task is called: without a name of its own, as the reusable task that it refers to.
fn name(task: &Node) -> Option<&str> {
    let text = |key: &str| match &field(task, key)?.data {
        Data::Text(text) => Some(text.as_str()),
        _ => None,
    };
    text("name").or_else(|| text("task"))
}
