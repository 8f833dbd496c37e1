//! The task types, and the facts about each that several crates need.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::TypeName;

macro_rules! task_kinds {
    ($($(#[$attribute:meta])* $variant:ident = $name:literal,)*) => {
        /// The type of a task: the word after `type:` in a definition.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub enum TaskKind {
            $($(#[$attribute])* $variant,)*
            /// A type that a file in `types/` declares. Its name has a dot, which no built-in name has.
            Custom(TypeName),
        }

        impl TaskKind {
            /// Every built-in task type, in the order in which they are declared.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in definitions, rows and responses.
            pub fn name(&self) -> &str {
                match self {
                    Self::Custom(name) => name.as_str(),
                    built_in => built_in.label(),
                }
            }

            /// The name in metrics, where all custom types are one: users must not choose the values of a label.
            pub fn label(&self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Custom(_) => "custom",
                }
            }
        }
    };
}

task_kinds! {
    /// Does nothing and succeeds.
    #[default]
    Noop = "noop",
    /// Returns its rendered config.
    Echo = "echo",
    /// Always fails, with its message.
    Fail = "fail",
    /// Fails with a given probability.
    Flaky = "flaky",
    /// Waits for a time.
    Sleep = "sleep",
    /// Chooses the branches that go on.
    Switch = "switch",
    /// Returns the value of an expression.
    Transform = "transform",
    /// Waits for a signal.
    WaitForSignal = "wait_for_signal",
    /// Waits until a person decides.
    Approval = "approval",
    /// Runs a task for each element of a list.
    FanOut = "fan_out",
    /// Aggregates the outputs of a fan-out's children.
    FanIn = "fan_in",
    /// Starts a run of another workflow.
    Workflow = "workflow",
    /// Polls until a condition outside holds.
    Sensor = "sensor",
    /// Sends an HTTP request.
    Http = "http",
    /// Runs a command or script with bash.
    Bash = "bash",
    /// Runs a command, a script or code with Python.
    Python = "python",
}

/// Where the tasks of a type are executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Execution {
    /// In the engine: no worker ever sees it.
    Engine,
    /// By a worker that does not claim the attempt first: it has no side effects, so doing it twice is harmless.
    Inline,
    /// By a worker that has claimed the attempt.
    Claimed,
}

/// The event for which a sleeping task waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// A time, as `sleep` does.
    Timer,
    /// A signal to its run.
    Signal,
    /// The decision of a person.
    Approval,
    /// Its children, as a fan-out does.
    Children,
    /// The run that it started.
    Run,
    /// A condition outside, which is polled.
    Sensor,
}

impl WaitsFor {
    /// The name used in API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Signal => "signal",
            Self::Approval => "approval",
            Self::Children => "children",
            Self::Run => "run",
            Self::Sensor => "sensor",
        }
    }
}

impl TaskKind {
    /// The task type of that name. Whether a custom type of it is declared is another question.
    pub fn named(name: &str) -> Option<Self> {
        let built_in = Self::ALL.iter().find(|kind| kind.label() == name).cloned();
        built_in.or_else(|| TypeName::new(name).map(Self::Custom))
    }

    /// Where its tasks are executed.
    pub fn execution(&self) -> Execution {
        match self {
            Self::Noop | Self::Echo | Self::Fail | Self::Flaky => Execution::Inline,
            Self::Http | Self::Bash | Self::Python | Self::Custom(_) => Execution::Claimed,
            Self::Sleep
            | Self::Switch
            | Self::Transform
            | Self::WaitForSignal
            | Self::Approval
            | Self::FanOut
            | Self::FanIn
            | Self::Workflow
            | Self::Sensor => Execution::Engine,
        }
    }

    /// Whether the engine executes it itself.
    pub fn is_engine_task(&self) -> bool {
        self.execution() == Execution::Engine
    }

    /// Whether a worker performs it without a claim.
    pub fn is_inline(&self) -> bool {
        self.execution() == Execution::Inline
    }

    /// Whether its tasks run code that users wrote, in a process of its own.
    pub fn runs_user_code(&self) -> bool {
        match self {
            Self::Bash | Self::Python | Self::Custom(_) => true,
            Self::Noop
            | Self::Echo
            | Self::Fail
            | Self::Flaky
            | Self::Http
            | Self::Sleep
            | Self::Switch
            | Self::Transform
            | Self::WaitForSignal
            | Self::Approval
            | Self::FanOut
            | Self::FanIn
            | Self::Workflow
            | Self::Sensor => false,
        }
    }

    /// What its tasks wait for while they sleep. The other types sleep only while another run does the work that they
    /// share.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        match self {
            Self::Sleep => Some(WaitsFor::Timer),
            Self::WaitForSignal => Some(WaitsFor::Signal),
            Self::Approval => Some(WaitsFor::Approval),
            Self::FanOut => Some(WaitsFor::Children),
            Self::Workflow => Some(WaitsFor::Run),
            Self::Sensor => Some(WaitsFor::Sensor),
            Self::Noop
            | Self::Echo
            | Self::Fail
            | Self::Flaky
            | Self::Switch
            | Self::Transform
            | Self::FanIn
            | Self::Http
            | Self::Bash
            | Self::Python
            | Self::Custom(_) => None,
        }
    }

    /// Whether it starts a run of another workflow.
    pub fn starts_run(&self) -> bool {
        self.waits_for() == Some(WaitsFor::Run)
    }

    /// Whether another attempt can end differently. Engine tasks give the same result again, unless they start a run.
    pub fn is_retryable(&self) -> bool {
        !self.is_engine_task() || self.starts_run()
    }

    /// Whether it can reach systems outside, and so may need secrets. A sensor is an engine task that polls them.
    pub fn reaches_outside(&self) -> bool {
        self.execution() == Execution::Claimed || *self == Self::Sensor
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for TaskKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TaskKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| de::Error::custom(format!("unknown task type `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_the_name_that_is_stored() {
        let custom = TaskKind::Custom(TypeName::new("raster.validate").unwrap());
        for kind in TaskKind::ALL.iter().chain([&custom]) {
            assert_eq!(TaskKind::named(kind.name()).as_ref(), Some(kind));
            assert_eq!(serde_json::to_value(kind).ok(), Some(kind.name().into()));
            assert_eq!(serde_json::from_value(kind.name().into()).ok().as_ref(), Some(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        assert_eq!(TaskKind::named("bsh"), None);
        assert!(serde_json::from_value::<TaskKind>("bsh".into()).is_err());
    }

    #[test]
    fn only_engine_tasks_wait() {
        let waits = |kind: &&TaskKind| kind.waits_for().is_some();
        assert!(TaskKind::ALL.iter().filter(waits).all(|kind| kind.is_engine_task()));
    }
}
