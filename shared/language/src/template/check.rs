//! Templates of a definition: what can be known to be wrong before anything runs.

use std::collections::BTreeSet;
use std::ops::Range;

use model::InputType;

use super::names::Names;
use super::syntax::{self, Problem, Reference, Template, is_template};
use super::{braces, shell};
use crate::diagnostic::Report;
use crate::node::{Data, Node, Position};
use crate::read::Word;
use crate::types::{Dialect, TaskType};

/// Reports everything wrong with one text that may be a template.
pub(crate) fn check_word(word: Word<'_>, names: &Names<'_>, report: &mut Report<'_>) {
    judge(word, 0, syntax::parse(word.text), Some(names), report);
}

/// Reports everything wrong with one expression that stands without braces.
pub(crate) fn check_expression(word: Word<'_>, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    judge(word, 0, syntax::parse_expression(word.text), names, report);
}

/// Reports everything wrong with the templates in a config, and with the values that its programs ask for. While
/// it is not known which names exist, only what cannot be read is reported.
pub(crate) fn check_config(
    config: &Node,
    task: &TaskType,
    names: Option<&Names<'_>>,
    report: &mut Report<'_>,
) {
    let names = names.map(|names| names.with_secrets(task.kind.reaches_outside()));
    let names = names.as_ref();
    let Data::Map(entries) = &config.data else { return check(config, names, report) };
    for (key, node) in entries {
        match (task.dialect(&key.name), &node.data) {
            (Some(Dialect::Shell), Data::Text(text)) => {
                check_command(Word { text, at: &node.at }, names, report)
            }
            // Files are not templates.
            (Some(Dialect::Code), Data::Map(_)) => {}
            (Some(Dialect::Code), Data::Text(text)) => check_code(Word { text, at: &node.at }, names, report),
            (Some(Dialect::Expression), Data::Text(text)) => {
                check_expression(Word { text, at: &node.at }, names, report);
            }
            _ => check(node, names, report),
        }
        if key.name == "env" && task.runs_commands() {
            check_variables(node, report);
            let commands = entries.iter().filter(|(key, _)| task.dialect(&key.name) == Some(Dialect::Shell));
            let texts = commands.filter_map(|(_, command)| text_of(command));
            texts.for_each(|text| check_computed(node, &shell::read(text).computed, names, report));
        }
    }
}

/// Refuses texts in variables that bash computes.
fn check_computed(
    env: &Node,
    computed: &BTreeSet<String>,
    names: Option<&Names<'_>>,
    report: &mut Report<'_>,
) {
    let Data::Map(variables) = &env.data else { return };
    for (_, value) in variables.iter().filter(|(key, _)| computed.contains(&key.name)) {
        if text_of(value).is_some_and(|text| is_text(text, names)) {
            let refusal = shell::Refusal::Computed;
            report.add(&value.at, refusal.message(), Some(refusal.hint().to_owned()));
        }
    }
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether a template is an input that is no number, nor like one. Of others, the value decides.
fn is_text(template: &str, names: Option<&Names<'_>>) -> bool {
    let inner = template.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let input = inner.and_then(|inner| inner.trim_matches(['-', '+', ' ']).strip_prefix("inputs."));
    let kind = input.and_then(|name| names?.kind_of_input(name));
    kind.is_some_and(|kind| {
        !matches!(kind, InputType::Integer | InputType::Number | InputType::Boolean | InputType::Date)
    })
}

/// Refuses values in variables that decide what a program runs.
fn check_variables(env: &Node, report: &mut Report<'_>) {
    let Data::Map(variables) = &env.data else { return };
    for (key, value) in variables {
        // The system splits a variable from its value at the first `=`.
        let name = key.name.split('=').next().unwrap_or_default();
        if matches!(&value.data, Data::Text(text) if is_template(text)) && shell::is_evaluated(name) {
            let refusal = shell::Refusal::Variable;
            report.add(&value.at, refusal.message(), Some(refusal.hint().to_owned()));
        }
    }
}

/// Reports everything wrong with the templates in a value, if it is known which names exist there.
pub(crate) fn check(node: &Node, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if is_template(text) => {
            judge(Word { text, at: &node.at }, 0, syntax::parse(text), names, report);
        }
        Data::List(items) => items.iter().for_each(|item| check(item, names, report)),
        Data::Map(entries) => entries.iter().for_each(|(_, value)| check(value, names, report)),
        _ => {}
    }
}

fn check_command(word: Word<'_>, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    for slot in shell::read(word.text).slots {
        let is_computed = slot.is_computed && is_text(&word.text[slot.span.clone()], names);
        let refusal = slot.quoting.err().or(is_computed.then_some(shell::Refusal::Computed));
        if let Some(refusal) = refusal {
            let at = position(word, slot.span.clone(), report);
            report.add(&at, refusal.message(), Some(refusal.hint().to_owned()));
        }
        let (start, source) = (slot.span.start, &word.text[slot.span]);
        judge(word, start, syntax::parse_in_command(source), names, report);
    }
}

fn check_code(word: Word<'_>, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    let item = names.is_some_and(|names| names.has_item());
    for span in braces::in_code(word.text, item) {
        let value = &word.text[span.clone()];
        let message = "values are not inserted into code".to_owned();
        let hint = format!(
            "write env: {{VALUE: \"{value} }}}}\"}} and read os.environ[\"VALUE\"], or read the JSON file that EBB_INPUT names"
        );
        report.add(&position(word, span, report), message, Some(hint));
    }
}

/// Reports everything wrong with a template that begins at byte `start` of a text.
fn judge(
    word: Word<'_>,
    start: usize,
    parsed: Result<Template, Problem>,
    names: Option<&Names<'_>>,
    report: &mut Report<'_>,
) {
    let within = |span: &Range<usize>| start + span.start..start + span.end;
    let template = match parsed {
        Ok(template) => template,
        Err(problem) => {
            let at = position(word, within(&problem.span), report);
            return report.add(&at, problem.message, problem.hint);
        }
    };
    // `outputs.my-task` reads as a subtraction; what follows the `-` is no mistake of its own.
    let before = |span: &Range<usize>| word.text.get(..start + span.start).unwrap_or_default();
    let dashed = |reference: &&Reference| before(&reference.span).ends_with('-');
    for reference in template.references.iter().filter(|reference| !dashed(reference)) {
        let after = word.text.get(start + reference.span.end..).unwrap_or_default();
        if let Some((message, hint)) = names.and_then(|names| names.unknown(reference, after, &report.budget))
        {
            report.add(&position(word, within(&reference.span), report), message, hint);
        }
    }
}

fn position(word: Word<'_>, span: Range<usize>, report: &Report<'_>) -> Position {
    let part = word.text.get(span.clone()).unwrap_or_default();
    report.inside(word.at, word.text, part, span.start)
}
