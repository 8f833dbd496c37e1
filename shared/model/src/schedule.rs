//! When a workflow runs by itself, and what the runs of an instant are about.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Instant, Overlap};

/// When a workflow runs by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name within the workflow.
    #[serde(default = "only", skip_serializing_if = "is_only")]
    pub name: String,
    /// The instants.
    #[serde(flatten)]
    pub when: When,
    /// An IANA name; patterns are read in it.
    pub timezone: String,
    /// What its runs are given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// What becomes of instants that were missed.
    pub catchup: Catchup,
    /// The maximum number of runs created at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// No more of its runs go on at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_active_runs: Option<u32>,
    /// What becomes of one too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// Whether the file says that it rests.
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
    /// Once.
    At(Instant),
}

/// What becomes of instants that a schedule missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Catchup {
    /// Each gets its run.
    All,
    /// The latest gets its run.
    Latest,
    /// None does.
    None,
}

impl Catchup {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::All, Self::Latest, Self::None];

    /// The name used in files, rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Latest => "latest",
            Self::None => "none",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|catchup| catchup.name() == name)
    }
}

/// The time that a run of a schedule is about: from one instant to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The instant before its logical date.
    pub start: Instant,
    /// Its logical date.
    pub end: Instant,
}

/// What a run is of that nobody asked for by itself: a schedule's, at one of its instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The schedule's name.
    pub schedule: String,
    /// What the run is about.
    pub interval: Interval,
}

impl Schedule {
    /// The name of a workflow's only schedule. Runs of it and runs that people start share their logical dates.
    pub const ONLY: &'static str = "default";

    /// The group of a schedule that has a limit of its own beside others.
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

/// A workflow's schedules are written as one where there is one.
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
