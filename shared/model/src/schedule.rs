//! When a workflow runs by itself, and the interval that each such run is about.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Instant, Overlap};

/// When a workflow runs by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name within the workflow.
    #[serde(default = "only", skip_serializing_if = "is_only")]
    pub name: String,
    /// The instants at which it starts runs.
    #[serde(flatten)]
    pub when: When,
    /// The IANA name of the time zone that cron patterns are read in.
    pub timezone: String,
    /// The inputs of its runs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// The treatment of missed instants.
    pub catchup: Catchup,
    /// The maximum number of runs created at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// The maximum number of its runs at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_active_runs: Option<u32>,
    /// The treatment of a run that exceeds the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// Whether the definition pauses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// The instants of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A pattern of five fields, or six with seconds first.
    Cron(String),
    /// Every this many seconds, counted from the epoch.
    Every(u32),
    /// One instant, and no other.
    At(Instant),
}

/// The treatment of instants that a schedule missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Catchup {
    /// A run is created for each of them.
    All,
    /// A run is created for the latest one.
    Latest,
    /// No run is created for them.
    None,
}

impl Catchup {
    /// Every policy, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::All, Self::Latest, Self::None];

    /// The name used in files, rows and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Latest => "latest",
            Self::None => "none",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|catchup| catchup.name() == name)
    }
}

/// The interval that a run of a schedule is about: from one instant to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The instant before the run's logical date.
    pub start: Instant,
    /// The run's logical date.
    pub end: Instant,
}

/// The schedule that a run was created by, and the instant it was created for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The schedule's name in its workflow.
    pub schedule: String,
    /// The interval that the run is about.
    pub interval: Interval,
}

impl Schedule {
    /// The name of a workflow's only schedule. Runs of it and runs that people start share their logical dates.
    pub const ONLY: &'static str = "default";

    /// The concurrency group of a schedule that has a limit of its own.
    pub fn concurrency_group(name: &str) -> String {
        format!("schedule:{name}")
    }
}

fn only() -> String {
    Schedule::ONLY.to_owned()
}

fn is_only(name: &str) -> bool {
    name == Schedule::ONLY
}

/// Serializes a workflow's schedules as one if there is only one.
pub(crate) mod one_or_many {
    use super::*;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(Box<Schedule>),
        Many(Vec<Schedule>),
    }

    pub(crate) fn serialize<S: Serializer>(schedules: &[Schedule], serializer: S) -> Result<S::Ok, S::Error> {
        match schedules {
            [one] if is_only(&one.name) => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Schedule>, D::Error> {
        Ok(match Option::<Written>::deserialize(deserializer)? {
            Some(Written::One(one)) => vec![*one],
            Some(Written::Many(many)) => many,
            None => Vec::new(),
        })
    }
}
