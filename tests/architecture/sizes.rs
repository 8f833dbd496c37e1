//! The budgets of files, traits and types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{crates, is_test, root, sources};

/// The maximum length of a source file: a longer one does two things.
const MAX_FILE: usize = 400;

/// A trait or a type with more methods is several: callers see, and implementors write, what they do not need.
const MAX_TRAIT: usize = 20;
const MAX_TYPE: usize = 30;

#[test]
fn no_file_does_two_things() {
    let long: Vec<String> = sources(&root())
        .into_iter()
        .map(|path| (fs::read_to_string(&path).unwrap().lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_FILE)
        .map(|(lines, path)| format!("{} ({lines} lines)", path.display()))
        .collect();
    assert!(long.is_empty(), "longer than {MAX_FILE} lines: {long:#?}");
}

/// The methods of each trait, and the inherent methods of each type over all its `impl` blocks.
#[derive(Default)]
struct Methods {
    traits: BTreeMap<String, usize>,
    types: BTreeMap<String, usize>,
}

/// A line without its visibility, whether `pub`, `pub(crate)`, `pub(super)` or `pub(in path)`.
fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    rest.strip_prefix(' ').unwrap_or(line)
}

/// The name at the beginning of a text.
fn name(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

impl Methods {
    /// Counts the methods of one source, except those of its unit tests.
    fn count(&mut self, source: &str) {
        let mut open = None;
        for line in source.split("\nmod tests {").next().unwrap().lines() {
            let head = without_visibility(line);
            if let Some(rest) = head.strip_prefix("trait ") {
                open = Some((&mut self.traits, name(rest)));
            } else if head.starts_with("impl") && !line.starts_with(' ') && !head.contains(" for ") {
                // The type follows the generic parameters of the block.
                let rest = head.split_once("> ").filter(|_| head.starts_with("impl<"));
                let rest = rest.map_or(head.trim_start_matches("impl "), |(_, rest)| rest);
                open = Some((&mut self.types, name(rest)));
            } else if line.starts_with('}') {
                open = None;
            } else if let (Some((counts, owner)), Some(item)) = (&mut open, line.strip_prefix("    "))
                && !item.starts_with(' ')
                && format!(" {item}").contains(" fn ")
                && !item.starts_with("//")
            {
                *counts.entry(owner.clone()).or_insert(0) += 1;
            }
        }
    }

    fn of(folder: &Path) -> Self {
        let mut methods = Self::default();
        let product = sources(&folder.join("src")).into_iter().filter(|path| !is_test(path));
        product.for_each(|path| methods.count(&fs::read_to_string(path).unwrap()));
        methods
    }
}

#[test]
fn no_trait_or_type_has_too_many_methods() {
    let (mut found, mut large) = (0, Vec::new());
    for (crate_name, folder) in crates() {
        if ["tests", "bench", "testkit"].contains(&crate_name.as_str()) {
            continue;
        }
        let Methods { traits, types } = Methods::of(&folder);
        found += traits.len() + types.len();
        for (counts, most) in [(traits, MAX_TRAIT), (types, MAX_TYPE)] {
            let beyond = counts.into_iter().filter(|(_, count)| *count > most);
            large.extend(beyond.map(|(name, count)| (format!("{crate_name}::{name}"), count)));
        }
    }
    assert!(found > 300, "only {found} traits and types were found");
    assert!(
        large.is_empty(),
        "more methods than a trait ({MAX_TRAIT}) or a type ({MAX_TYPE}) may have: {large:?}"
    );
}

#[test]
fn methods_are_counted_below_a_declared_test_module_and_whatever_the_visibility() {
    let source = "#[cfg(test)]\nmod tests;\n\npub(super) trait Source {\n    fn first(&self);\n    fn second(&self);\n}\n
pub(in crate::live) struct Feed;\n\nimpl<'a> Feed {\n    pub(super) fn open() {\n    }\n}\n
#[cfg(test)]\nmod tests {\nimpl Feed {\n    fn stub() {\n    }\n}\n}\n";
    let mut methods = Methods::default();
    methods.count(source);
    assert_eq!(methods.traits, BTreeMap::from([("Source".to_owned(), 2)]));
    assert_eq!(methods.types, BTreeMap::from([("Feed".to_owned(), 1)]));
}
