//! Templates of a definition: what can be known to be wrong before anything runs.

use std::ops::Range;

use model::InputSpec;

use super::scope::Scope;
use super::syntax::{self, Problem, Reference, Template, is_template};
use super::{braces, shell};
use crate::dependencies::Upstream;
use crate::diagnostic::Report;
use crate::inputs;
use crate::kinds::{Dialect, Kind};
use crate::node::{Data, Node, Place};
use crate::read::Word;
use crate::suggest;

const OF_RUN: [&str; 3] = ["inputs", "run", "logical_date"];
const RUN_FIELDS: [&str; 3] = ["id", "logical_date", "trigger"];
const TASK_FIELDS: [&str; 2] = ["name", "attempt"];

/// The names that exist where a template stands.
pub(crate) struct Names<'a> {
    inputs: &'a [InputSpec],
    task: Option<(&'a Upstream, usize)>,
    /// Whether these are only the inputs declared so far.
    so_far: bool,
}

/// Why a reference cannot be resolved.
type Unknown = (String, Option<String>);

impl<'a> Names<'a> {
    /// Those of a template that belongs to a run as a whole.
    pub(crate) fn of_run(inputs: &'a [InputSpec]) -> Self {
        Self { inputs, task: None, so_far: false }
    }

    /// Those of an input's default, which sees the inputs declared before it.
    pub(crate) fn of_default(earlier: &'a [InputSpec]) -> Self {
        Self { inputs: earlier, task: None, so_far: true }
    }

    /// Those of a task's templates.
    pub(crate) fn of_task(inputs: &'a [InputSpec], upstream: &'a Upstream, task: usize) -> Self {
        Self { inputs, task: Some((upstream, task)), so_far: false }
    }

    fn top(&self) -> &'static [&'static str] {
        const ALL: [&str; 5] = Scope::NAMES;
        if self.task.is_some() { &ALL } else { &OF_RUN }
    }

    fn unknown(&self, reference: &Reference) -> Option<Unknown> {
        let path = &reference.path;
        // A default stands in for the last part only: `a.b | default(1)` still needs `a`.
        let needed = path.len() - usize::from(reference.guarded);
        let top = path.first()?;
        if !self.top().contains(&top.as_str()) {
            return (needed > 0).then(|| self.unknown_top(top));
        }
        let field = path.get(1).filter(|_| needed > 1);
        match (top.as_str(), self.task) {
            ("inputs", _) => field.and_then(|name| self.unknown_input(name)),
            ("run", _) => field.and_then(|name| unknown_field("run", name, &RUN_FIELDS)),
            ("task", _) => field.and_then(|name| unknown_field("task", name, &TASK_FIELDS)),
            ("outputs", Some((upstream, task))) => path.get(1).and_then(|name| {
                let unknown = unknown_output(upstream, task, name);
                unknown.filter(|_| needed > 1 || upstream.knows(name))
            }),
            _ => None,
        }
    }

    fn unknown_top(&self, name: &str) -> Unknown {
        let is_input = inputs::names(self.inputs).any(|input| input == name);
        let is_task = self.task.is_some_and(|(upstream, _)| upstream.knows(name));
        let hint = match (is_input, is_task) {
            (true, _) => Some(format!("did you mean `inputs.{name}`?")),
            (_, true) => Some(format!("did you mean `outputs['{name}']`?")),
            _ => suggest::hint(name, self.top().iter().copied()),
        };
        (format!("the name `{name}` does not exist here"), hint)
    }

    fn unknown_input(&self, name: &str) -> Option<Unknown> {
        if inputs::names(self.inputs).any(|input| input == name) {
            return None;
        }
        let hint = suggest::hint(name, inputs::names(self.inputs));
        let declare = || Some(format!("declare it: inputs: {{{name}: {{type: string}}}}"));
        let place = if self.so_far { " declared before this one" } else { "" };
        Some((format!("there is no input `{name}`{place}"), hint.or_else(declare)))
    }
}

fn unknown_field(top: &str, name: &str, fields: &[&'static str]) -> Option<Unknown> {
    let hint = || suggest::hint(name, fields.iter().copied());
    (!fields.contains(&name)).then(|| (format!("`{top}` has no `{name}`"), hint()))
}

fn unknown_output(upstream: &Upstream, task: usize, name: &str) -> Option<Unknown> {
    let own = upstream.name(task);
    if upstream.reaches(task, name) {
        None
    } else if name == own {
        Some((format!("the task `{own}` cannot see its own output"), None))
    } else if upstream.is_after(task, name) {
        Some((format!("`{name}` comes after `{own}`, so its output cannot be seen here"), None))
    } else if upstream.knows(name) {
        let message = format!("`{name}` is not upstream of `{own}`, so its output cannot be seen here");
        Some((message, Some(format!("add `{name}` to the `depends_on` of `{own}`"))))
    } else {
        let candidates = upstream.of(task);
        // `outputs.my-task` reads as `outputs.my` minus `task`.
        let dashed = candidates.iter().find(|candidate| candidate.starts_with(&format!("{name}-")));
        let hint = match dashed {
            Some(dashed) => Some(format!("a name with `-` goes into brackets: `outputs['{dashed}']`")),
            None => suggest::hint(name, candidates.iter().copied()),
        };
        Some((format!("there is no task `{name}` in this workflow"), hint))
    }
}

/// Reports everything wrong with the templates in a value.
pub(crate) fn check(node: &Node, names: &Names<'_>, report: &mut Report<'_>) {
    check_node(node, Some(names), report);
}

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
pub(crate) fn check_config(config: &Node, kind: &Kind, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    let Data::Map(entries) = &config.data else { return check_node(config, names, report) };
    for (key, node) in entries {
        match (kind.dialect(&key.name), &node.data) {
            (Some(Dialect::Shell), Data::Text(text)) => {
                check_command(Word { text, at: &node.at }, names, report)
            }
            (Some(Dialect::Code), Data::Text(text)) => check_code(Word { text, at: &node.at }, report),
            (Some(Dialect::Expression), Data::Text(text)) => {
                check_expression(Word { text, at: &node.at }, names, report);
            }
            _ => check_node(node, names, report),
        }
    }
}

fn check_node(node: &Node, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if is_template(text) => {
            judge(Word { text, at: &node.at }, 0, syntax::parse(text), names, report);
        }
        Data::List(items) => items.iter().for_each(|item| check_node(item, names, report)),
        Data::Map(entries) => entries.iter().for_each(|(_, value)| check_node(value, names, report)),
        _ => {}
    }
}

fn check_command(word: Word<'_>, names: Option<&Names<'_>>, report: &mut Report<'_>) {
    for slot in shell::slots(word.text) {
        if let Err(refusal) = slot.quoting {
            let at = place(word, slot.span.clone(), report);
            report.add(&at, refusal.message(), Some(refusal.hint().to_owned()));
        }
        let (start, source) = (slot.span.start, &word.text[slot.span]);
        judge(word, start, syntax::parse_in_command(source), names, report);
    }
}

fn check_code(word: Word<'_>, report: &mut Report<'_>) {
    for span in braces::in_code(word.text) {
        let value = &word.text[span.clone()];
        let message = "this is code, and values are not put into code".to_owned();
        let hint = format!(
            "write env: {{VALUE: \"{value} }}}}\"}} and read os.environ[\"VALUE\"], or read the JSON file that EBB_INPUT names"
        );
        report.add(&place(word, span, report), message, Some(hint));
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
            let at = place(word, within(&problem.span), report);
            return report.add(&at, problem.message, problem.hint);
        }
    };
    // `outputs.my-task` reads as a subtraction; what follows the `-` is no mistake of its own.
    let before = |span: &Range<usize>| word.text.get(..start + span.start).unwrap_or_default();
    let dashed = |reference: &&Reference| before(&reference.span).ends_with('-');
    for reference in template.references.iter().filter(|reference| !dashed(reference)) {
        if let Some((message, hint)) = names.and_then(|names| names.unknown(reference)) {
            report.add(&place(word, within(&reference.span), report), message, hint);
        }
    }
}

fn place(word: Word<'_>, span: Range<usize>, report: &Report<'_>) -> Place {
    let part = word.text.get(span.clone()).unwrap_or_default();
    report.inside(word.at, word.text, part, span.start)
}
