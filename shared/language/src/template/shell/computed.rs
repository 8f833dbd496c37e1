//! Which variables bash computes. Its arithmetic runs commands that it finds in their values, as in `a[$(date)]`, and so do
//! `eval` and its like.
//!
//! A name counts wherever it may be computed, and a value may reach a name by any order of commands: what is refused without
//! need is rare, and what is accepted never runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Variables that bash fills in with what the commands contain: any value may be in them. `@` stands for the positional
/// parameters.
const FILLED_IN: [&str; 9] = [
    "@",
    "_",
    "BASH_ARGV",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "BASH_REMATCH",
    "DIRSTACK",
    "OLDPWD",
    "PWD",
];

/// What begins arithmetic in text that another shell runs.
const OPENERS: [&str; 4] = ["((", "$[", "[[ ", "let "];

/// How text names a positional parameter.
const PARAMETERS: [&str; 2] = ["$", "${"];

/// Where values go from, and where to.
#[derive(Default)]
pub(super) struct Computed {
    names: BTreeSet<String>,
    /// The variables whose values may reach a variable.
    sources: BTreeMap<String, BTreeSet<String>>,
}

impl Computed {
    /// Notes that bash computes what a variable holds.
    pub(super) fn add(&mut self, name: &str) {
        if !name.is_empty() {
            self.names.insert(name.to_owned());
        }
    }

    /// Notes every name in text that bash computes.
    pub(super) fn add_all(&mut self, text: &str) {
        identifiers(text).for_each(|name| self.add(name));
    }

    /// Notes the names in text that another shell runs, if it computes anything.
    pub(super) fn add_code(&mut self, text: &str) {
        if OPENERS.iter().any(|opener| text.contains(opener)) {
            identifiers(text).filter(|name| !FILLED_IN.contains(name)).for_each(|name| self.add(name));
            let after =
                |opener: &str| text.split(opener).skip(1).any(|rest| rest.starts_with(['1', '2', '@', '*']));
            if PARAMETERS.iter().any(|opener| after(opener)) {
                self.add("@");
            }
        }
    }

    /// Notes that the value of a variable may reach another one.
    pub(super) fn flow(&mut self, from: &str, to: &str) {
        self.sources.entry(to.to_owned()).or_default().insert(from.to_owned());
    }

    /// All names whose values are computed, also by way of others.
    pub(super) fn close(mut self) -> BTreeSet<String> {
        self.flow("@", "OPTARG");
        let mut left: Vec<String> = self.names.iter().cloned().collect();
        // An empty name stands for any.
        left.extend((!left.is_empty()).then(String::new));
        while let Some(name) = left.pop() {
            for source in self.sources.remove(&name).into_iter().flatten() {
                if self.names.insert(source.clone()) {
                    left.push(source);
                }
            }
        }
        self.names
    }
}

/// Whether one of the variables that bash fills in is among these.
pub(super) fn takes_any(names: &BTreeSet<String>) -> bool {
    FILLED_IN.iter().any(|name| names.contains(*name))
}

/// The names in a text.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Whether bash can compute a value without running anything in it: a number, a date, or nothing.
pub(in crate::template) fn is_number(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().all(|c| c.is_ascii_digit() || "+-.:".contains(c)),
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}
