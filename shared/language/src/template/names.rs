//! The names that exist where a template stands, and what to say of one that does not.

use model::{InputType, SecretName};

use super::syntax::Reference;
use crate::dependencies::Upstream;
use crate::inputs::{InputNames, NO_INPUTS};
use crate::suggest::Budget;

const OF_RUN: [&str; 3] = ["inputs", "run", "logical_date"];
const OF_TASK: [&str; 5] = ["inputs", "outputs", "run", "task", "logical_date"];
const OF_ITEM: [&str; 2] = ["item", "index"];
const RUN_FIELDS: [&str; 5] = ["id", "logical_date", "trigger", "data_interval_start", "data_interval_end"];
const TASK_FIELDS: [&str; 2] = ["name", "attempt"];
const EVENT_FIELDS: [&str; 8] = ["id", "on", "state", "error", "task", "attempt", "run", "workflow"];
/// What a trigger knows of what happened elsewhere.
const CLOUD_FIELDS: [&str; 7] = ["id", "source", "type", "subject", "time", "data", "attributes"];

/// The names that exist where a template stands.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    inputs: &'a InputNames,
    task: Option<(&'a Upstream, usize)>,
    /// Whether these are only the inputs declared so far.
    so_far: bool,
    item: bool,
    /// The fields of `event`, where there is one.
    event: &'static [&'static str],
    /// Whether there is no run yet, and so nothing of one.
    before_run: bool,
    secrets: bool,
}

/// Why a reference cannot be resolved.
type Unknown = (String, Option<String>);

impl<'a> Names<'a> {
    /// Those of a template that belongs to a run as a whole.
    pub(crate) fn of_run(inputs: &'a InputNames) -> Self {
        let (so_far, item, before_run, secrets) = Default::default();
        Self { inputs, task: None, so_far, item, event: &[], before_run, secrets }
    }

    /// Those of a trigger, which sees what happened and nothing else.
    pub(crate) fn of_event() -> Self {
        Self { event: &CLOUD_FIELDS, ..Self::of_nothing() }
    }

    /// A scope without any names.
    pub(crate) fn of_nothing() -> Self {
        Self { before_run: true, ..Self::of_run(&NO_INPUTS) }
    }

    /// Those of an input's default, which sees the inputs declared before it.
    pub(crate) fn of_default(earlier: &'a InputNames) -> Self {
        Self { so_far: true, ..Self::of_run(earlier) }
    }

    /// Those of a task's templates.
    pub(crate) fn of_task(inputs: &'a InputNames, upstream: &'a Upstream, task: usize) -> Self {
        Self { task: Some((upstream, task)), ..Self::of_run(inputs) }
    }

    /// These, and those that only a fan-out's task knows.
    pub(crate) fn with_item(self) -> Self {
        Self { item: true, ..self }
    }

    /// These, and what only a callback knows.
    pub(crate) fn with_event(self) -> Self {
        Self { event: &EVENT_FIELDS, ..self }
    }

    /// These, and secrets if they are resolved there.
    pub(crate) fn with_secrets(self, secrets: bool) -> Self {
        Self { secrets, ..self }
    }

    pub(super) fn has_item(&self) -> bool {
        self.item
    }

    /// The type of an input, if it is declared.
    pub(super) fn kind_of_input(&self, name: &str) -> Option<InputType> {
        self.inputs.kind(name)
    }

    fn top(&self) -> Vec<&'static str> {
        let mut names = match (self.before_run, self.task) {
            (true, _) => Vec::new(),
            (false, Some(_)) => OF_TASK.to_vec(),
            (false, None) => OF_RUN.to_vec(),
        };
        names.extend(OF_ITEM.iter().filter(|_| self.item));
        names.extend((!self.event.is_empty()).then_some("event"));
        names.extend(self.secrets.then_some("secrets"));
        names
    }

    /// Why a reference cannot be resolved; `after` is what follows it.
    pub(super) fn unknown(&self, reference: &Reference, after: &str, budget: &Budget) -> Option<Unknown> {
        let path = &reference.path;
        // A default stands in for the last part only: `a.b | default(1)` still needs `a`.
        let needed = path.len() - usize::from(reference.guarded);
        let top = path.first()?;
        if top == "secrets" {
            return self.unknown_secret(path.get(1).map(String::as_str), after);
        }
        if !self.top().contains(&top.as_str()) {
            return (needed > 0).then(|| self.unknown_top(top, budget));
        }
        let field = path.get(1).filter(|_| needed > 1);
        match (top.as_str(), self.task) {
            ("inputs", _) => field.and_then(|name| self.unknown_input(name, budget)),
            ("run", _) => field.and_then(|name| unknown_field("run", name, &RUN_FIELDS, budget)),
            ("task", _) => field.and_then(|name| unknown_field("task", name, &TASK_FIELDS, budget)),
            ("event", _) => field.and_then(|name| unknown_field("event", name, self.event, budget)),
            ("outputs", Some((upstream, task))) => path.get(1).and_then(|name| {
                let unknown = unknown_output(upstream, task, name, budget);
                unknown.filter(|_| needed > 1 || upstream.knows(name))
            }),
            _ => None,
        }
    }

    fn unknown_top(&self, name: &str, budget: &Budget) -> Unknown {
        let is_input = self.inputs.contains(name);
        let is_task = self.task.is_some_and(|(upstream, _)| upstream.knows(name));
        let message = format!("the name `{name}` does not exist here");
        if is_input {
            (message, Some(format!("did you mean `inputs.{name}`?")))
        } else if is_task {
            (message, Some(format!("did you mean `outputs['{name}']`?")))
        } else if self.event.contains(&name) {
            (message, Some(format!("did you mean `event.{name}`?")))
        } else if OF_ITEM.contains(&name) {
            let hint =
                "to do something for each element of a list: `type: fan_out` with `for_each` and `task`";
            (format!("`{name}` exists only inside a fan-out's task"), Some(hint.to_owned()))
        } else if name == "event" {
            let hint = "such as `on_failure: {notify: {webhook: …}}`".to_owned();
            ("`event` exists only in callbacks and triggers".to_owned(), Some(hint))
        } else {
            (message, budget.hint(name, self.top()))
        }
    }

    /// A secret cannot be looked up, so only its name's form and its place are judged.
    fn unknown_secret(&self, name: Option<&str>, after: &str) -> Option<Unknown> {
        let dashed = after.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
        match (name, dashed) {
            _ if !self.secrets => {
                let message =
                    "secrets are resolved only when a worker executes a task, so there are none here";
                let hint =
                    "use it in the `config` of a task such as `http`, `bash` or `python`, or in a webhook";
                Some((message.to_owned(), Some(hint.to_owned())))
            }
            (None, _) => {
                let hint = Some("write `secrets.NAME`; the name cannot be computed".to_owned());
                Some(("a secret is used by its name".to_owned(), hint))
            }
            // `secrets.my-key` reads as `secrets.my` minus `key`.
            (Some(name), Some(rest)) => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
                let whole = format!("{name}-{}", &rest[..end.unwrap_or(rest.len())]);
                let hint = format!("put a name that contains `-` in brackets: `secrets['{whole}']`");
                Some((format!("`secrets.{whole}` would be a subtraction"), Some(hint)))
            }
            (Some(name), None) => SecretName::new(name).err().map(|error| (error.to_string(), None)),
        }
    }

    fn unknown_input(&self, name: &str, budget: &Budget) -> Option<Unknown> {
        if self.inputs.contains(name) {
            return None;
        }
        let hint = budget.hint(name, self.inputs.iter());
        let declare = || Some(format!("declare it: inputs: {{{name}: {{type: string}}}}"));
        let place = if self.so_far { " declared before this one" } else { "" };
        Some((format!("there is no input `{name}`{place}"), hint.or_else(declare)))
    }
}

fn unknown_field(top: &str, name: &str, fields: &[&'static str], budget: &Budget) -> Option<Unknown> {
    let hint = || budget.hint(name, fields.iter().copied());
    (!fields.contains(&name)).then(|| (format!("`{top}` has no `{name}`"), hint()))
}

fn unknown_output(upstream: &Upstream, task: usize, name: &str, budget: &Budget) -> Option<Unknown> {
    let own = upstream.name(task);
    if upstream.reaches(task, name) {
        None
    } else if name == own {
        Some((format!("the task `{own}` cannot see its own output"), None))
    } else if upstream.is_after(task, name) {
        Some((format!("`{name}` comes after `{own}`, so its output is not available here"), None))
    } else if upstream.knows(name) {
        let message = format!("`{name}` is not upstream of `{own}`, so its output is not available here");
        Some((message, Some(format!("add `{name}` to the `depends_on` of `{own}`"))))
    } else {
        // Listing what is upstream takes time too.
        let candidates = if budget.is_spent() { Vec::new() } else { upstream.of(task) };
        // `outputs.my-task` reads as `outputs.my` minus `task`.
        let dashed = candidates.iter().find(|candidate| candidate.starts_with(&format!("{name}-")));
        let hint = match dashed {
            Some(dashed) => Some(format!("put a name that contains `-` in brackets: `outputs['{dashed}']`")),
            None => budget.hint(name, candidates.iter().copied()),
        };
        Some((format!("there is no task `{name}` in this workflow"), hint))
    }
}
