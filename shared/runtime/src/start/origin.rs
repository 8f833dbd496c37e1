//! The origins of runs.

use model::message::RunRequested;
use model::{BackfillId, Parent, Planned, RunId};

/// What starts a run. It decides the trigger that is stored with the run, how deep it is nested, and whether its inputs
/// are templates.
#[derive(Clone, PartialEq, Debug)]
pub enum Origin {
    /// A caller of the API.
    Api {
        /// The authenticated caller's name.
        by: String,
    },
    /// A message on the bus.
    Message {
        /// The publisher of the message; `message` by default.
        trigger: String,
    },
    /// A task of another run.
    Child(Parent),
    /// A callback of another run.
    Callback {
        /// The run that the callback is about.
        run: RunId,
        /// How deep that run is nested.
        depth: u32,
    },
    /// A date of a schedule.
    Schedule(Planned),
    /// A date of a backfill.
    Backfill {
        /// The backfill that the run belongs to.
        id: BackfillId,
        /// The schedule whose date it is.
        planned: Planned,
        /// The number of the version that its runs take; none for the active one.
        version: Option<i32>,
        /// Who created the backfill.
        by: String,
    },
    /// An event that a trigger received.
    Trigger {
        /// The kind of the trigger's source, such as `event`.
        kind: &'static str,
        /// The trigger and the event.
        by: String,
        /// How deep the new run is nested: a trigger may follow the end of another run.
        depth: u32,
    },
}

impl Origin {
    /// The kind of trigger, as it is stored and shown.
    pub(crate) fn trigger_kind(&self) -> &str {
        match self {
            Self::Api { .. } => "api",
            Self::Message { trigger } => trigger,
            Self::Child(_) => "workflow",
            Self::Callback { .. } => "callback",
            Self::Schedule(_) => "schedule",
            Self::Backfill { .. } => "backfill",
            Self::Trigger { kind, .. } => kind,
        }
    }

    /// Who started the run, as it is stored and shown.
    pub(crate) fn by(&self) -> String {
        match self {
            Self::Api { by } | Self::Backfill { by, .. } | Self::Trigger { by, .. } => by.clone(),
            Self::Message { trigger } => trigger.clone(),
            Self::Child(_) => "workflow".into(),
            Self::Callback { run, .. } => format!("run {run}"),
            Self::Schedule(planned) => format!("schedule {}", planned.schedule),
        }
    }

    /// The task that starts the run, if one does.
    pub(crate) fn parent(&self) -> Option<Parent> {
        match self {
            Self::Child(parent) => Some(*parent),
            _ => None,
        }
    }

    /// How many runs the new one is below the one that no task, callback or trigger of another run started.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Self::Child(parent) => parent.depth,
            Self::Callback { depth, .. } => depth + 1,
            Self::Trigger { depth, .. } => *depth,
            Self::Api { .. } | Self::Message { .. } | Self::Schedule(_) | Self::Backfill { .. } => 0,
        }
    }

    /// The schedule's date that the run is for. The inputs of such a run are templates.
    pub(crate) fn planned(&self) -> Option<&Planned> {
        match self {
            Self::Schedule(planned) | Self::Backfill { planned, .. } => Some(planned),
            _ => None,
        }
    }

    /// The number of the version that the run takes; none for the active one.
    pub(crate) fn version(&self) -> Option<i32> {
        match self {
            Self::Backfill { version, .. } => *version,
            _ => None,
        }
    }
}

impl From<&RunRequested> for Origin {
    fn from(request: &RunRequested) -> Self {
        match request.parent {
            Some(parent) => Self::Child(parent),
            None => Self::Message { trigger: request.trigger.clone() },
        }
    }
}
