//! The registry of task types: what there is, and what the rest of the system must know of each.

use std::sync::LazyLock;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use crate::config::{
    Approval, BashFields, ChildWorkflow, Echo, Fail, FanIn, FanOut, Flaky, Http, Noop, PythonFields,
    SensorFields, Sleep, Switch, Transform, WaitForSignal,
};
use crate::template::{self, RenderError, Scope};

/// One task type.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The word after `type:`.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Whether it is carried out without being claimed first: nothing outside is touched.
    pub instant: bool,
    /// Whether evaluation settles it; it is never sent to a worker.
    pub inside: bool,
    /// Retries, unless the workflow says otherwise.
    pub retries: u32,
    /// How long an attempt may take, unless the workflow says otherwise.
    pub timeout_seconds: u32,
    /// The JSON Schema of its config.
    pub schema: Value,
    /// The settings that are programs or expressions: they are no templates, and values never become part of
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

impl Kind {
    fn new<Config: JsonSchema>(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            instant: false,
            inside: false,
            retries: 0,
            timeout_seconds: 3600,
            schema: schema_for!(Config).to_value(),
            programs: &[],
            urls: &[],
        }
    }

    /// Renders a config of this type: as [`template::render`], with values encoded where they enter a URL, and
    /// put into `env` where they enter a command line.
    pub fn render(&self, config: &Value, scope: &Scope) -> Result<Value, RenderError> {
        template::render_config(config, scope, self)
    }

    /// Whether secrets are resolved for it: only where it leaves the system. What an instant type is told becomes
    /// its output, which is stored. A sensor is settled inside, and looks outside.
    pub(crate) fn takes_secrets(&self) -> bool {
        !self.inside && !self.instant || self.name == "sensor"
    }

    /// What the setting of that name is written in, if it is no template.
    pub(crate) fn dialect(&self, setting: &str) -> Option<Dialect> {
        self.programs.iter().find(|(name, _)| *name == setting).map(|(_, dialect)| *dialect)
    }
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    vec![
        Kind { instant: true, ..Kind::new::<Noop>("noop", "does nothing") },
        Kind { instant: true, ..Kind::new::<Echo>("echo", "returns its rendered config") },
        Kind { instant: true, ..Kind::new::<Fail>("fail", "fails, always") },
        Kind { instant: true, ..Kind::new::<Flaky>("flaky", "fails with a given probability") },
        Kind { inside: true, ..Kind::new::<Sleep>("sleep", "waits, while nothing runs") },
        Kind { inside: true, ..Kind::new::<Switch>("switch", "chooses the tasks that go on") },
        Kind {
            inside: true,
            programs: &[("expression", Dialect::Expression)],
            ..Kind::new::<Transform>("transform", "returns the value of an expression")
        },
        Kind {
            inside: true,
            ..Kind::new::<WaitForSignal>("wait_for_signal", "waits for a signal and returns its payload")
        },
        Kind {
            inside: true,
            ..Kind::new::<Approval>("approval", "waits until a person decides, and returns the answer")
        },
        Kind { inside: true, ..Kind::new::<FanOut>("fan_out", "does a task for each element of a list") },
        Kind {
            inside: true,
            ..Kind::new::<FanIn>("fan_in", "gathers what the children of a fan-out delivered")
        },
        // It may be retried: each attempt is a new run.
        Kind { inside: true, ..Kind::new::<ChildWorkflow>("workflow", "starts a run of another workflow") },
        Kind {
            inside: true,
            urls: &["http.url"],
            ..Kind::new::<SensorFields>("sensor", "waits until something is there, and returns it")
        },
        Kind { urls: &["url"], ..Kind::new::<Http>("http", "sends an HTTP request and returns the answer") },
        Kind {
            programs: &[("command", Dialect::Shell)],
            ..Kind::new::<BashFields>("bash", "runs a command or script with bash")
        },
        Kind {
            programs: &[("command", Dialect::Shell), ("code", Dialect::Code)],
            ..Kind::new::<PythonFields>("python", "runs a command, a script or code with Python")
        },
    ]
});

/// Every task type.
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The task type of that name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
