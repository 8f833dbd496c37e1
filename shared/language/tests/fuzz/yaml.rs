//! Changes to files that keep them readable: a tree is changed and written again.

use serde_json::Value;

use crate::corpus::CORPUS;
use crate::grammar;
use crate::random::Random;
use crate::words;
use crate::{bombs, mutate};

/// A file that began as a workflow or a reusable task.
pub(crate) fn any_file(random: &mut Random) -> String {
    match random.below(10) {
        0 => bombs::yaml(random),
        1..=4 => edited(random),
        _ => {
            let files = if random.one_in(8) { &CORPUS.tasks } else { &CORPUS.files };
            let file = random.pick_text(files);
            let words = random.pick(&[words::KEYS, words::YAML, words::PIECES, words::TIMES]);
            mutate::text(file.to_owned(), &CORPUS.files, words, random)
        }
    }
}

fn edited(random: &mut Random) -> String {
    let mut tree = CORPUS.trees[random.below(CORPUS.trees.len())].clone();
    for _ in 0..=random.below(4) {
        edit(&mut tree, 0, random);
    }
    let written =
        if random.one_in(2) { serde_json::to_string(&tree) } else { serde_json::to_string_pretty(&tree) };
    written.unwrap()
}

/// Changes one value somewhere below.
fn edit(tree: &mut Value, depth: usize, random: &mut Random) {
    let deeper = depth < 2 || !random.one_in(4);
    match tree {
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(12) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                2 => items.extend(vec![items[at].clone(); random.size(500)]),
                _ => edit(&mut items[at], depth + 1, random),
            }
        }
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            match random.below(14) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert(random.pick(words::KEYS).to_owned(), fields[&name].clone())),
                2 => drop(fields.insert(random.pick(words::KEYS).to_owned(), replacement(random))),
                _ => edit(fields.entry(name).or_insert(Value::Null), depth + 1, random),
            }
        }
        Value::String(text) if random.one_in(2) => {
            *text = mutate::text(std::mem::take(text), &CORPUS.texts, words::PIECES, random);
        }
        other => *other = replacement(random),
    }
}

fn replacement(random: &mut Random) -> Value {
    match random.below(7) {
        0 => grammar::value(3, random),
        1 => Value::String(grammar::any_expression(random)),
        2 => Value::String(grammar::any_template(random)),
        3 => Value::String(bombs::command(random)),
        4 => Value::String(random.pick(words::KEYS).repeat(1 + random.size(5000))),
        5 => part(CORPUS.trees[random.below(CORPUS.trees.len())].clone(), random),
        _ => Value::String(random.pick(words::KEYS).to_owned()),
    }
}

/// Some part of a tree.
fn part(tree: Value, random: &mut Random) -> Value {
    let parts: Vec<Value> = match &tree {
        Value::Array(items) => items.clone(),
        Value::Object(fields) => fields.values().cloned().collect(),
        _ => Vec::new(),
    };
    match parts.is_empty() || random.one_in(4) {
        true => tree,
        false => part(parts[random.below(parts.len())].clone(), random),
    }
}
