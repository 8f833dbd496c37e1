//! `${{ parameters.NAME }}` in texts.

use std::ops::Range;

use crate::diagnostic::Report;
use crate::node::{Data, Node, Position};
use crate::suggest::Budget;

const WORD: &str = "parameters";
/// The maximum number reported for one text: locating each takes time.
const MAX_PROBLEMS: usize = 20;

/// A part of a text that seems to stand for a parameter.
pub(super) struct Marker<'t> {
    /// The bytes of the text.
    pub(super) span: Range<usize>,
    /// Whether there is a `$` before the braces.
    is_marked: bool,
    /// The parameter's name, if the rest is well-formed.
    name: Option<&'t str>,
}

impl<'t> Marker<'t> {
    /// The name of the parameter, if the marker is well-formed.
    pub(super) fn name(&self) -> Option<&'t str> {
        self.name.filter(|_| self.is_marked)
    }
}

/// Every part of a text that seems to stand for a parameter.
pub(super) fn find(text: &str) -> impl Iterator<Item = Marker<'_>> {
    text.match_indices("{{").filter_map(|(at, _)| read(text, at))
}

/// Whether a text has any such part.
pub(super) fn is_in(text: &str) -> bool {
    find(text).next().is_some()
}

fn read(text: &str, at: usize) -> Option<Marker<'_>> {
    let inner = &text[at + 2..];
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let after = inner.trim_start_matches('-').trim_start().strip_prefix(WORD)?;
    if after.starts_with(part) {
        return None;
    }
    let length = inner.find("}}").map_or(inner.len(), |end| end + 2);
    let path = inner.trim_start().strip_prefix(WORD).and_then(|rest| rest.strip_prefix('.'));
    let name = path.and_then(|path| path.split_once("}}")).map(|(name, _)| name.trim_end());
    let is_marked = text[..at].ends_with('$');
    Some(Marker {
        span: at - usize::from(is_marked)..at + 2 + length,
        is_marked,
        name: name.filter(|name| !name.is_empty() && name.chars().all(part)),
    })
}

/// Reports every marker in a template that is malformed or names an unknown parameter.
pub(super) fn check(node: &Node, known: &[&str], report: &mut Report<'_>) {
    each_text(node, &mut |text, at, is_key| {
        let budget = &report.budget;
        let problems =
            find(text).filter_map(|marker| Some((problem(&marker, is_key, known, budget)?, marker)));
        let problems: Vec<_> = problems.take(MAX_PROBLEMS).collect();
        for ((message, hint), marker) in problems {
            report.add(&position(&marker, text, at, report), message, hint);
        }
    });
}

fn problem(
    marker: &Marker<'_>,
    is_key: bool,
    known: &[&str],
    budget: &Budget,
) -> Option<(String, Option<String>)> {
    match marker.name() {
        None => Some(("a parameter cannot be put in like this".to_owned(), Some(form(marker.name)))),
        Some(_) if is_key => {
            let hint = "put it into the value".to_owned();
            Some(("a parameter cannot be put into a key".to_owned(), Some(hint)))
        }
        Some(name) if known.contains(&name) => None,
        Some(name) => {
            let hint = budget.hint(name, known.iter().copied());
            let declare = || Some(format!("declare it: `parameters: {{{name}: {{type: string}}}}`"));
            Some((format!("there is no parameter `{name}`"), hint.or_else(declare)))
        }
    }
}

/// Reports every marker in a workflow, which has no parameters.
pub(super) fn refuse(root: &Node, report: &mut Report<'_>) {
    each_text(root, &mut |text, at, _| {
        for marker in find(text).filter(|marker| marker.is_marked).take(MAX_PROBLEMS) {
            let hint = "a workflow has `inputs`; parameters are put into workflow templates".to_owned();
            let message = "a workflow has no parameters of its own";
            report.add(&position(&marker, text, at, report), message, Some(hint));
        }
    });
}

/// The position of a marker in its file.
pub(super) fn position(marker: &Marker<'_>, text: &str, at: &Position, report: &Report<'_>) -> Position {
    report.inside(at, text, &text[marker.span.clone()], marker.span.start)
}

/// Visits the texts of a tree, with whether each is a key.
pub(super) fn each_text(node: &Node, visit: &mut impl FnMut(&str, &Position, bool)) {
    match &node.data {
        Data::Text(text) => visit(text, &node.at, false),
        Data::List(items) => items.iter().for_each(|item| each_text(item, visit)),
        Data::Map(entries) => {
            for (key, value) in entries {
                visit(&key.name, &key.at, true);
                each_text(value, visit);
            }
        }
        _ => {}
    }
}

fn form(name: Option<&str>) -> String {
    format!("write `${{{{ parameters.{} }}}}`", name.unwrap_or("NAME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Option<&str>> {
        find(text).map(|marker| marker.name()).collect()
    }

    #[test]
    fn a_marker_is_a_dollar_and_a_parameter_in_braces() {
        assert_eq!(names("a ${{ parameters.x }} b ${{parameters.y_2}}"), [Some("x"), Some("y_2")]);
        assert_eq!(names("$${{ parameters.x }}"), [Some("x")]);
    }

    #[test]
    fn what_a_run_renders_is_no_marker() {
        for text in
            ["{{ inputs.x }}", "${{ inputs.price }}", "{{ parametersx }}", "parameters.x", "${x}", "{{"]
        {
            assert!(!is_in(text), "{text}");
        }
    }

    #[test]
    fn a_marker_that_is_misspelt_is_found_and_names_nothing() {
        for text in [
            "{{ parameters.x }}",
            "${{ parameters }}",
            "${{ parameters.x | upper }}",
            "${{- parameters.x }}",
            "${{ parameters['x'] }}",
            "${{ parameters.x",
        ] {
            assert_eq!(names(text), [None], "{text}");
        }
    }
}
