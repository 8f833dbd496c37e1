//! What the language knows about each task type: its settings, and how values reach them.

use std::borrow::Cow;
use std::sync::LazyLock;

use model::{CustomType, TaskKind, TypeName};
use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};

use crate::config::{
    Approval, BashFields, ChildWorkflow, Echo, Fail, FanIn, FanOut, Flaky, Http, Noop, PythonFields,
    SensorFields, Sleep, Switch, Transform, WaitForSignal,
};
use crate::template::{self, RenderError, Scope};

/// The facts about one task type.
#[derive(Clone, Debug)]
pub struct TaskType {
    /// The word after `type:`.
    pub kind: TaskKind,
    /// A summary in one line.
    pub summary: Cow<'static, str>,
    /// The JSON Schema of its config.
    pub schema: Value,
    /// The settings that are programs or expressions: they are not templates, and values never become part of
    /// their text.
    pub programs: &'static [(&'static str, Dialect)],
    /// The settings that are URLs: values put into them are percent-encoded.
    pub urls: &'static [&'static str],
}

/// What a program is written in, and so how values reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// A command line for bash: `{{ … }}` names a variable of the environment that holds the value.
    Shell,
    /// Code of any other kind: it reads values from `env` or from the file that `EBB_INPUT` names.
    Code,
    /// An expression of our own, without braces: it names values itself.
    Expression,
}

impl TaskType {
    /// What the language knows about a task type. Of a custom one, that is only how values reach its settings: the
    /// schema is in the version that uses it.
    pub fn of(kind: &TaskKind) -> &'static Self {
        TYPES.iter().find(|task| task.kind == *kind).unwrap_or(&CUSTOM)
    }

    /// What a file in `types/` says about a task type.
    pub(crate) fn custom(name: &TypeName, custom: &CustomType) -> Self {
        let summary = custom.description.clone().unwrap_or_else(|| "a custom task type".to_owned());
        let (kind, schema) = (TaskKind::Custom(name.clone()), custom.config.clone());
        Self { kind, summary: summary.into(), schema, programs: &[], urls: &[] }
    }

    fn new<Config: JsonSchema>(kind: &TaskKind, summary: &'static str) -> Self {
        let (kind, summary) = (kind.clone(), summary.into());
        Self { kind, summary, schema: schema_for!(Config).to_value(), programs: &[], urls: &[] }
    }

    /// Renders a config of this type: as [`template::render`], with values encoded where they enter a URL, and
    /// put into `env` where they enter a command line.
    pub fn render(&self, config: &Value, scope: &Scope) -> Result<Value, RenderError> {
        template::render_config(config, scope, self)
    }

    /// Whether the setting of that name is code or files, in which `{{ … }}` means nothing.
    pub fn is_code(&self, setting: &str) -> bool {
        self.dialect(setting) == Some(Dialect::Code)
    }

    /// Whether a task of this type runs a program with the variables in `env`.
    pub(crate) fn runs_commands(&self) -> bool {
        self.programs.iter().any(|(_, dialect)| *dialect == Dialect::Shell)
    }

    /// What the setting of that name is written in, if it is not a template.
    pub(crate) fn dialect(&self, setting: &str) -> Option<Dialect> {
        self.programs.iter().find(|(name, _)| *name == setting).map(|(_, dialect)| *dialect)
    }
}

static TYPES: LazyLock<Vec<TaskType>> = LazyLock::new(|| TaskKind::ALL.iter().map(describe).collect());

/// Stands for every custom type.
static CUSTOM: LazyLock<TaskType> =
    LazyLock::new(|| describe(&TaskKind::Custom(TypeName::new("custom.type").expect("it has a dot"))));

fn describe(kind: &TaskKind) -> TaskType {
    match kind {
        TaskKind::Noop => TaskType::new::<Noop>(kind, "does nothing"),
        TaskKind::Echo => TaskType::new::<Echo>(kind, "returns its rendered config"),
        TaskKind::Fail => TaskType::new::<Fail>(kind, "always fails"),
        TaskKind::Flaky => TaskType::new::<Flaky>(kind, "fails with a given probability"),
        TaskKind::Sleep => TaskType::new::<Sleep>(kind, "waits without using a slot"),
        TaskKind::Switch => TaskType::new::<Switch>(kind, "chooses which tasks run"),
        TaskKind::Transform => TaskType {
            programs: &[("expression", Dialect::Expression)],
            ..TaskType::new::<Transform>(kind, "returns the value of an expression")
        },
        TaskKind::WaitForSignal => {
            TaskType::new::<WaitForSignal>(kind, "waits for a signal and returns its payload")
        }
        TaskKind::Approval => {
            TaskType::new::<Approval>(kind, "waits until a person decides, and returns the answer")
        }
        TaskKind::FanOut => TaskType::new::<FanOut>(kind, "runs a task for each element of a list"),
        TaskKind::FanIn => TaskType::new::<FanIn>(kind, "aggregates the outputs of a fan-out's children"),
        TaskKind::Workflow => TaskType::new::<ChildWorkflow>(kind, "starts a run of another workflow"),
        TaskKind::Sensor => TaskType {
            urls: &["http.url"],
            ..TaskType::new::<SensorFields>(kind, "waits until it finds something, and returns it")
        },
        TaskKind::Http => TaskType {
            urls: &["url"],
            ..TaskType::new::<Http>(kind, "sends an HTTP request and returns the response")
        },
        TaskKind::Bash => TaskType {
            programs: &[("command", Dialect::Shell), ("files", Dialect::Code)],
            ..TaskType::new::<BashFields>(kind, "runs a command or script with bash")
        },
        TaskKind::Python => TaskType {
            programs: &[("command", Dialect::Shell), ("code", Dialect::Code), ("files", Dialect::Code)],
            ..TaskType::new::<PythonFields>(kind, "runs a command, a script, code or a function with Python")
        },
        TaskKind::Custom(_) => TaskType {
            schema: json!({"type": "object"}),
            ..TaskType::new::<Noop>(kind, "runs on workers that declare it")
        },
    }
}

/// All built-in task types, in the order of the reference.
pub fn types() -> &'static [TaskType] {
    &TYPES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a schema, or one of the shapes of which it takes one, has a setting at a path such as `http.url`.
    fn has(root: &Value, schema: &Value, path: &str) -> bool {
        let target = schema["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
        let schema = target.unwrap_or(schema);
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let here = schema["properties"].get(name);
        let mut shapes = schema["anyOf"].as_array().into_iter().flatten();
        here.is_some_and(|inner| rest.is_none_or(|rest| has(root, inner, rest)))
            || shapes.any(|shape| has(root, shape, path))
    }

    #[test]
    fn every_program_and_url_is_a_setting_of_its_type() {
        for task in types() {
            let programs = task.programs.iter().map(|(name, _)| name);
            for name in programs.chain(task.urls) {
                assert!(has(&task.schema, &task.schema, name), "`{}` has no setting `{name}`", task.kind);
            }
        }
    }
}
