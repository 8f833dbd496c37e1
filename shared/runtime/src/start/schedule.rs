//! Runs that schedules start; pausing and resuming schedules.

use calendar::{Calendar, CatchupRequest, Drift, Due, GRACE, Progress, due};
use chrono::TimeDelta;
use model::{Catchup, Instant, Planned, RunId, TenantId};
use store::{Pause, Paused, ScheduleRecord};
use tracing::{error, warn};

use super::{Origin, StartRun, Started};
use crate::{Error, Result, Schedules};

/// The delay before a schedule that cannot be read is tried again.
const RETRY_DELAY: TimeDelta = TimeDelta::minutes(10);

/// The delay before a schedule whose tenant has no room for another run is tried again. Less than [`GRACE`], so that none of the
/// instants that follow is missed meanwhile.
const QUOTA_DELAY: TimeDelta = TimeDelta::minutes(1);

/// How often a change is tried while others change the same schedule.
const MAX_TRIES: u32 = 10;

impl Schedules<'_> {
    /// Makes the runs of schedules that are due. Two processes at the same time find the same runs, and each is created
    /// once. Returns how many schedules advanced.
    pub async fn fire(self, now: Instant, limit: u32) -> Result<usize> {
        let mut moved = 0;
        for record in self.runtime.store.due_schedules(now, limit).await? {
            moved += usize::from(self.fire_schedule(record, now).await?);
        }
        Ok(moved)
    }

    async fn fire_schedule(self, record: ScheduleRecord, now: Instant) -> Result<bool> {
        let calendar = match Calendar::of(&record.schedule) {
            Ok(calendar) => calendar,
            Err(error) => return self.put_off(record, now, error.to_string()).await,
        };
        let before = record.clone();
        let owed = record.owed.map(|(which, until)| CatchupRequest { which, until });
        let progress = Progress { decided_until: record.decided_until, owed };
        let due = due(&calendar, &record.schedule, progress, now);
        let mut then = ScheduleRecord {
            decided_until: due.then.decided_until,
            owed: due.then.owed.map(|owed| (owed.which, owed.until)),
            due_at: due.due_at,
            ..record
        };
        let mut drift = Drift::from_counts(&then.drift);
        for date in &due.make {
            let date = *date;
            match self.start_scheduled(&then, &calendar, date).await {
                Ok(started) => {
                    if started.new && date + GRACE >= now {
                        let late = self.runtime.clock.now() - date;
                        crate::counting::drift(late);
                        drift.add(late);
                    }
                    (then.last_date, then.problem) = (Some(date), None);
                }
                // Nothing is decided: what is due meanwhile is missed once the workflow goes on.
                Err(Error::Paused(_)) => {
                    let resting = ScheduleRecord { due_at: None, ..before };
                    return Ok(self.runtime.store.save_schedule(&resting).await?);
                }
                // It exists, or the workflow's policy skips it.
                Err(Error::DateTaken(_) | Error::KeyReused(_) | Error::ConcurrencyGroupTaken(_)) => {}
                Err(error) if error.is_passing() => return Err(error),
                Err(error) if error.is_quota() => {
                    then.drift = drift.counts().to_vec();
                    return self.wait_for_room(then, &due, date, now, &error).await;
                }
                Err(error) if error.is_hopeless() => {
                    warn!(
                        "{} of schedule {}/{} has no run: {error}",
                        date, then.workflow, then.schedule.name
                    );
                    then.problem = Some(format!("no run for {}: {error}", date.to_rfc3339()));
                }
                Err(error) => return self.put_off(then, now, error.to_string()).await,
            }
        }
        then.drift = drift.counts().to_vec();
        Ok(self.runtime.store.save_schedule(&then).await?)
    }

    async fn start_scheduled(
        self,
        record: &ScheduleRecord,
        calendar: &Calendar,
        date: Instant,
    ) -> Result<Started> {
        let planned = Planned { schedule: record.schedule.name.clone(), interval: calendar.interval(date) };
        let identity = format!("schedule\n{}\n{date}", planned.schedule);
        let id = RunId::from_key(record.tenant, &record.workflow, &identity);
        let request = StartRun {
            inputs: record.schedule.inputs.clone(),
            logical_date: Some(date),
            ..StartRun::new(id, record.tenant, &record.workflow, Origin::Schedule(planned))
        };
        self.runtime.start(request).await
    }

    /// Leaves a date and those after it undecided until the tenant has room for their runs. They are owed then, even if they are
    /// missed by that time.
    async fn wait_for_room(
        self,
        then: ScheduleRecord,
        due: &Due,
        date: Instant,
        now: Instant,
        error: &Error,
    ) -> Result<bool> {
        warn!(
            event = "quota_reached",
            "Schedule {}/{} waits with {date}: {error}", then.workflow, then.schedule.name
        );
        let more = due.then.owed.filter(|owed| owed.which == Catchup::All).map(|owed| owed.until);
        let until = due.make.last().copied().into_iter().chain(more).max().unwrap_or(date);
        let waiting = ScheduleRecord {
            decided_until: date - TimeDelta::microseconds(1),
            owed: Some((Catchup::All, until)),
            due_at: Some(now + QUOTA_DELAY),
            problem: Some(format!("the run for {} waits: {error}", date.to_rfc3339())),
            ..then
        };
        Ok(self.runtime.store.save_schedule(&waiting).await?)
    }

    /// Tries a schedule again later that cannot be evaluated, so that it does not delay the others.
    async fn put_off(self, record: ScheduleRecord, now: Instant, why: String) -> Result<bool> {
        error!("Schedule {}/{} cannot go on: {why}", record.workflow, record.schedule.name);
        let found =
            self.runtime.store.schedules(record.tenant, Some(&record.workflow), None, u32::MAX).await?;
        let Some(found) = found.into_iter().find(|found| found.schedule.name == record.schedule.name) else {
            return Ok(false);
        };
        let later = ScheduleRecord { due_at: Some(now + RETRY_DELAY), problem: Some(why), ..found };
        Ok(later.revision == record.revision && self.runtime.store.save_schedule(&later).await?)
    }

    /// Has a schedule make no runs until it is resumed. Returns it as it is then; none if there is no such schedule.
    pub async fn pause(
        self,
        tenant: TenantId,
        workflow: &str,
        name: &str,
        pause: Pause,
    ) -> Result<Option<ScheduleRecord>> {
        self.change_schedule(tenant, workflow, name, |record| match record.pause {
            Some(_) => record,
            None => ScheduleRecord { pause: Some(pause.clone()), due_at: None, ..record },
        })
        .await
    }

    /// Resumes a schedule. The caller decides which of the missed instants get their runs; otherwise the schedule's own
    /// policy does. A schedule that is not paused may be behind, since no sweep was up: then the decision holds for the
    /// instants that were missed, and not for those that are on time.
    pub async fn resume(
        self,
        tenant: TenantId,
        workflow: &str,
        name: &str,
        missed: Option<Catchup>,
    ) -> Result<Option<ScheduleRecord>> {
        let now = self.runtime.clock.now();
        let resumed = self
            .change_schedule(tenant, workflow, name, |record| match (&record.pause, record.schedule.paused) {
                (None, _) if record.due_at.is_some() && missed.is_some() => ScheduleRecord {
                    due_at: Some(now),
                    owed: missed.map(|which| (which, now - GRACE)),
                    ..record
                },
                (None, _) => record,
                (Some(_), rests) => ScheduleRecord {
                    pause: None,
                    due_at: (!rests).then_some(now),
                    owed: missed.map(|which| (which, now)).or(record.owed),
                    ..record
                },
            })
            .await?;
        self.runtime.wake_sweep(self.runtime.clock.now()).await;
        Ok(resumed)
    }

    /// Pauses a workflow: nothing starts runs of it by itself until it is resumed. Existing runs go on.
    pub async fn pause_workflow(self, tenant: TenantId, workflow: &str, pause: &Pause) -> Result<Paused> {
        Ok(self.runtime.store.pause_workflow(tenant, workflow, Some(pause), pause.at).await?)
    }

    /// Resumes a workflow. The caller decides which of the instants that its schedules missed get their runs; otherwise
    /// each schedule's own policy does.
    pub async fn resume_workflow(
        self,
        tenant: TenantId,
        workflow: &str,
        missed: Option<Catchup>,
    ) -> Result<Paused> {
        let now = self.runtime.clock.now();
        let resumed = self.runtime.store.pause_workflow(tenant, workflow, None, now).await?;
        if resumed == Paused::Changed {
            for record in self.runtime.store.schedules(tenant, Some(workflow), None, u32::MAX).await? {
                // Written even if it is due anyhow: a sweep that thinks that the workflow pauses must not
                // put it to rest any more.
                self.change_schedule(tenant, workflow, &record.schedule.name, |record| ScheduleRecord {
                    due_at: (!record.rests()).then_some(now),
                    owed: missed.map(|which| (which, now)).or(record.owed),
                    ..record
                })
                .await?;
            }
            self.runtime.wake_sweep(now).await;
        }
        Ok(resumed)
    }

    async fn change_schedule(
        self,
        tenant: TenantId,
        workflow: &str,
        name: &str,
        change: impl Fn(ScheduleRecord) -> ScheduleRecord,
    ) -> Result<Option<ScheduleRecord>> {
        for _ in 0..MAX_TRIES {
            let found = self.runtime.store.schedules(tenant, Some(workflow), None, u32::MAX).await?;
            let Some(record) = found.into_iter().find(|record| record.schedule.name == name) else {
                return Ok(None);
            };
            let changed = change(record.clone());
            if changed == record || self.runtime.store.save_schedule(&changed).await? {
                return Ok(Some(changed));
            }
        }
        Err(store::Error::Conflict.into())
    }
}
