//! Triggers, which start runs besides people and schedules: events, webhooks, the ends of other workflows' runs, sensors.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Instant, RunState, TenantId};

/// Something outside that starts runs of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trigger {
    /// Its name, unique in the workflow.
    pub name: String,
    /// The source of its events.
    pub on: TriggerOn,
    /// An expression over `event`: if it is false, no run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The inputs of the run; strings are templates over `event`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Of events that follow each other closer than this, only the last starts a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce_seconds: Option<u32>,
}

/// The source of a trigger's events.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerOn {
    /// An event that arrives as a message.
    Event {
        /// One of these types.
        types: Vec<String>,
        /// Its source, in which `*` stands for any text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// A request that is signed with a secret.
    Webhook {
        /// The name of the secret.
        secret: String,
    },
    /// Runs of all these workflows for one logical date.
    Workflows {
        /// The names of the workflows.
        workflows: Vec<String>,
        /// How each of them must have ended.
        state: Completion,
    },
    /// A source outside that is polled.
    Sensor {
        /// The source to poll; strings may be templates that name secrets.
        config: Value,
        /// How often to poll.
        pacing: Pacing,
    },
}

/// How a run must have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The run ended and succeeded.
    #[default]
    Succeeded,
    /// The run ended and failed.
    Failed,
    /// The run succeeded, failed or was cancelled.
    Finished,
}

impl Completion {
    /// Whether a run in that state meets it.
    pub fn is_met_by(self, state: RunState) -> bool {
        match self {
            Self::Succeeded => state == RunState::Succeeded,
            Self::Failed => state == RunState::Failed,
            Self::Finished => state.is_final(),
        }
    }
}

/// How often a sensor polls, and for how long.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pacing {
    /// The time between the first two polls.
    pub interval_seconds: u32,
    /// The factor by which each such time is longer than the one before.
    pub factor: f64,
    /// The maximum time between two polls.
    pub max_interval_seconds: u32,
    /// The time after which a task gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Whether a task that gives up is skipped instead of failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soft_fail: bool,
    /// The number of failed polls in a row after which a trigger pauses.
    pub max_failures: u32,
    /// The maximum number of runs that a trigger starts within an hour; more are flapping, and pause it.
    pub max_events_per_hour: u32,
}

impl Pacing {
    /// The time to the next poll, after a number of polls that each grew it.
    pub fn delay(&self, polls: u32) -> TimeDelta {
        let longest = f64::from(self.max_interval_seconds.max(self.interval_seconds));
        let grown = f64::from(self.interval_seconds) * self.factor.powi(polls.min(1_000) as i32);
        TimeDelta::milliseconds((grown.min(longest) * 1_000.0) as i64)
    }

    /// When a sensor that began to poll at `began` polls next after `now`: it follows from these two alone.
    pub fn next_poll(&self, began: Instant, now: Instant) -> Instant {
        let (mut at, mut polls) = (began, 0);
        while at <= now {
            let (delay, longer) = (self.delay(polls), self.delay(polls + 1));
            if delay == longer {
                // From here on, all delays are the same.
                let passed = (now - at).num_milliseconds() / delay.num_milliseconds().max(1);
                return at + delay * i32::try_from(passed + 1).unwrap_or(i32::MAX);
            }
            at += delay;
            polls += 1;
        }
        at
    }
}

/// Names one trigger, across all tenants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TriggerKey {
    /// The tenant of the workflow.
    pub tenant: TenantId,
    /// The workflow that defines it.
    pub workflow: String,
    /// Its name in the workflow.
    pub name: String,
}

/// Something that happened in another system, in the words of CloudEvents.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CloudEvent {
    /// Unique together with its source.
    pub id: String,
    /// The system or resource where it happened.
    pub source: String,
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The subject of the event.
    #[serde(default)]
    pub subject: Option<String>,
    /// When it happened, if known.
    #[serde(default)]
    pub time: Option<Instant>,
    /// The payload of the event.
    #[serde(default)]
    pub data: Value,
    /// The attributes of the message that carried it, or the event's own extensions.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

impl CloudEvent {
    /// The type of a Pub/Sub message that is not a CloudEvent.
    pub const MESSAGE: &str = "google.cloud.pubsub.topic.v1.messagePublished";

    /// The attribute or extension that names the event's tenant; the default tenant without it.
    pub const TENANT: &str = "ebbtenant";

    /// The identity of the event: two events with the same identity are the same event.
    pub fn identity(&self) -> String {
        format!("{}\n{}", self.source, self.id)
    }
}

impl Trigger {
    /// The kind of source that starts the run, as the run shows it.
    pub fn kind(&self) -> &'static str {
        match self.on {
            TriggerOn::Event { .. } => "event",
            TriggerOn::Webhook { .. } => "webhook",
            TriggerOn::Workflows { .. } => "workflow",
            TriggerOn::Sensor { .. } => "sensor",
        }
    }

    /// By what the trigger is found: the types of its events, or the workflows that it waits for.
    pub fn keys(&self) -> &[String] {
        match &self.on {
            TriggerOn::Event { types, .. } => types,
            TriggerOn::Workflows { workflows, .. } => workflows,
            TriggerOn::Webhook { .. } | TriggerOn::Sensor { .. } => &[],
        }
    }

    /// Whether it accepts events from this source.
    pub fn accepts_source(&self, source: &str) -> bool {
        match &self.on {
            TriggerOn::Event { source: Some(pattern), .. } => matches(pattern, source),
            _ => true,
        }
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(place) => left = &left[place + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACING: Pacing = Pacing {
        interval_seconds: 10,
        factor: 2.0,
        max_interval_seconds: 60,
        timeout_seconds: None,
        soft_fail: false,
        max_failures: 5,
        max_events_per_hour: 600,
    };

    #[test]
    fn polls_grow_apart_up_to_a_limit_and_follow_from_the_beginning_alone() {
        let began = Instant::UNIX_EPOCH;
        let next =
            |now: i64| (PACING.next_poll(began, began + TimeDelta::seconds(now)) - began).num_seconds();
        assert_eq!(
            [0, 9, 10, 29, 30, 70, 129, 130, 1_000].map(next),
            [10, 10, 30, 30, 70, 130, 130, 190, 1_030]
        );
        let steady = Pacing { factor: 1.0, ..PACING };
        assert_eq!((steady.next_poll(began, began + TimeDelta::seconds(95)) - began).num_seconds(), 100);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in
            [("a", "a"), ("*", ""), ("a*", "abc"), ("*/s/orders", "//p/s/orders"), ("a*b*c", "axxbyc")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*", "ba"), ("*/s/orders", "//p/s/orders2"), ("a*b*c", "acb")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
