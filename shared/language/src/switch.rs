//! The cases of a `switch`: read, and checked for branches that no run can take.

use std::collections::BTreeMap;

use model::Case;
use serde_json::json;

use crate::dependencies::task_names;
use crate::diagnostic::Report;
use crate::node::{Data, Node, Position};
use crate::read::{self, Fields, Word};
use crate::shape::{Record, Shape, custom, exactly_one, expression, node, record, required};
use crate::template::{Names, check_expression, expression as expressions};

record! {
    /// A case as written.
    struct CaseFields<'n> as "a case" {
        /// An expression, such as `inputs.n > 10`. The first case that holds is taken.
        when: Word<'n> = expression(),
        /// Taken if no other case holds; must be the last case.
        default: &'n Node = node(|| json!({"const": true})),
        /// The tasks to run; they wait for the switch implicitly.
        next: Vec<Word<'n>> = required(task_names()),
    }
    where exactly_one(&["when", "default"])
}

/// A case of which it is known whether it is the default.
#[derive(Clone, Debug)]
pub(crate) struct CaseParts<'n> {
    at: &'n Position,
    /// None is the default.
    when: Option<Word<'n>>,
    pub(crate) next: Vec<Word<'n>>,
}

impl CaseParts<'_> {
    pub(crate) fn complete(&self) -> Case {
        let when = self.when.map(|when| when.text.to_owned());
        Case { when, next: self.next.iter().map(|word| word.text.to_owned()).collect() }
    }
}

/// The shape of `cases`.
pub(crate) fn cases<'n>() -> impl Shape<'n, Value = Vec<CaseParts<'n>>> {
    let schema = || json!({"type": "array", "items": CaseFields::schema(), "minItems": 1});
    custom(|node, report| Some(read(node, report)), schema)
}

fn read<'n>(node: &'n Node, report: &mut Report<'_>) -> Vec<CaseParts<'n>> {
    let Some(entries) = read::list(node, report) else { return Vec::new() };
    if entries.is_empty() {
        let hint = "such as `- {when: inputs.n > 10, next: [large]}`".to_owned();
        report.add(&node.at, "a switch needs at least one case", Some(hint));
    }
    entries.iter().filter_map(|entry| read_case(entry, report)).collect()
}

fn read_case<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<CaseParts<'n>> {
    let mut fields = Fields::of(node, CaseFields::WHAT, report)?;
    let has_condition = fields.peek("when").is_some_and(|node| !node.is_null());
    let parts = CaseFields::take(&mut fields, report);
    fields.finish(report);
    let refused = match (has_condition, parts.default) {
        (true, None) | (false, Some(Node { data: Data::Bool(true), .. })) => None,
        (false, Some(default)) => {
            let hint = "write `default: true`, or give the case a `when`";
            Some((&default.at, format!("expected `true`, found {}", default.describe()), hint))
        }
        (true, Some(default)) => {
            let message = "a case has a condition or is the default, not both";
            Some((&default.at, message.to_owned(), "remove `when` or `default`"))
        }
        (false, None) => {
            let hint = "add `when: …`, or `default: true` to the last case";
            Some((&node.at, "a case needs a condition".to_owned(), hint))
        }
    };
    if let Some((at, message, hint)) = refused {
        report.add(at, message, Some(hint.to_owned()));
        return None;
    }
    if has_condition && parts.when.is_none() {
        return None;
    }
    Some(CaseParts { at: &node.at, when: parts.when, next: parts.next? })
}

/// Reports what is wrong with conditions, and the cases that can never be taken.
pub(crate) fn check(cases: &[CaseParts<'_>], names: &Names<'_>, report: &mut Report<'_>) {
    let mut earlier = Earlier::default();
    for case in cases {
        case.when.iter().for_each(|when| check_expression(*when, Some(names), report));
        let constant = case.when.and_then(|when| expressions::constant(when.text));
        if let Some((message, hint)) = earlier.excludes(case, constant) {
            let at = case.when.map_or(case.at, |when| when.at);
            report.add(at, message, Some(hint.to_owned()));
        }
        earlier.add(case, constant);
    }
}

/// What the cases before one leave to it: the lines of those that matter.
#[derive(Default)]
struct Earlier<'n> {
    default: Option<u32>,
    always: Option<u32>,
    conditions: BTreeMap<&'n str, u32>,
}

impl<'n> Earlier<'n> {
    fn add(&mut self, case: &CaseParts<'n>, constant: Option<bool>) {
        let line = case.at.line;
        match case.when {
            None => drop(self.default.get_or_insert(line)),
            Some(_) if constant == Some(true) => drop(self.always.get_or_insert(line)),
            Some(when) => drop(self.conditions.entry(when.text).or_insert(line)),
        }
    }

    /// Why the next case can never be taken, and what to do about it.
    fn excludes(&self, case: &CaseParts<'_>, constant: Option<bool>) -> Option<(String, &'static str)> {
        let never = |why: String| format!("this case can never be taken: {why}");
        let twin = case.when.and_then(|when| self.conditions.get(when.text));
        if let Some(line) = self.default {
            Some(match case.when {
                None => (format!("a default is already defined in line {line}"), "remove one of the two"),
                Some(_) => (
                    never(format!("the default in line {line} matches everything that remains")),
                    "move the default to the end",
                ),
            })
        } else if let Some(line) = self.always {
            let why = format!("the condition in line {line} is always true");
            Some((never(why), "remove it, or put it before"))
        } else if let Some(line) = twin {
            let why = format!("line {line} has the same condition");
            Some((never(why), "put all tasks into the `next` of one of the two"))
        } else if constant == Some(false) {
            let why = "its condition is always false".to_owned();
            Some((never(why), "remove the case, or compare with an input or an output"))
        } else {
            None
        }
    }
}
