//! Schedules of workflows in use, and how far each has come.

use async_trait::async_trait;
use model::{Catchup, Instant, Schedule, TenantId};

use crate::Result;

/// A schedule of a workflow's active version.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleRecord {
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// The name of the workflow.
    pub workflow: String,
    /// The schedule as the version defines it.
    pub schedule: Schedule,
    /// The instant up to which all instants have their run, or were decided to have none.
    pub decided_until: Instant,
    /// The decision of a person about the instants missed until then.
    pub owed: Option<(Catchup, Instant)>,
    /// When the sweep evaluates it next; none while it is paused, and after its last instant.
    pub due_at: Option<Instant>,
    /// Who paused it, if somebody did.
    pub pause: Option<Pause>,
    /// Why its last instant has no run, where it should have one.
    pub problem: Option<String>,
    /// The last date that got its run.
    pub last_date: Option<Instant>,
    /// How many runs began how late, class by class.
    pub drift: Vec<i64>,
    /// Grows with every change.
    pub revision: i32,
}

/// Who paused something, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pause {
    /// When it was paused.
    pub at: Instant,
    /// The person who paused it.
    pub by: String,
    /// Why, if they gave a reason.
    pub reason: Option<String>,
}

impl ScheduleRecord {
    /// A schedule that is new at that instant: earlier instants get no runs.
    pub fn new(tenant: TenantId, workflow: &str, schedule: Schedule, at: Instant) -> Self {
        Self {
            tenant,
            workflow: workflow.to_owned(),
            decided_until: at,
            owed: None,
            due_at: (!schedule.paused).then_some(at),
            schedule,
            pause: None,
            problem: None,
            last_date: None,
            drift: Vec::new(),
            revision: 0,
        }
    }

    /// Whether it makes no runs for now, because the file or a person says so.
    pub fn rests(&self) -> bool {
        self.schedule.paused || self.pause.is_some()
    }

    /// The same schedule as a new version has it. Other instants count from here on; with the same ones, what is not
    /// decided yet stays so.
    pub fn rewritten(self, schedule: Schedule, at: Instant) -> Self {
        if schedule == self.schedule {
            return self;
        }
        let same = schedule.when == self.schedule.when && schedule.timezone == self.schedule.timezone;
        let decided_until = if same { self.decided_until } else { self.decided_until.max(at) };
        let owed = self.owed.filter(|_| same);
        let written = Self { schedule, decided_until, owed, problem: None, ..self };
        Self { due_at: (!written.rests()).then_some(at), ..written }
    }
}

/// The part of a store that is about schedules. Registering, activating and archiving a workflow keeps them in step with
/// its active version, in the same transaction.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Schedules of a tenant, or of one workflow, by workflow and name, after the given ones.
    async fn schedules(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<ScheduleRecord>>;

    /// Schedules that are due, the longest overdue first.
    async fn due_schedules(&self, now: Instant, limit: u32) -> Result<Vec<ScheduleRecord>>;

    /// Writes a schedule over the revision it was read at. Returns whether it still had that revision.
    async fn save_schedule(&self, record: &ScheduleRecord) -> Result<bool>;
}
