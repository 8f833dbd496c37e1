//! The plan of a backfill, and the request to start it.

use std::collections::BTreeMap;

use calendar::{Calendar, wall};
use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use model::slot::LIVE_WEIGHT;
use model::{BackfillId, Catchup, Instant, RunId, RunState, Schedule, TenantId, When, Workflow};
use serde_json::Map;
use store::{BackfillDate, BackfillRecord, BackfillState, DateStep, Rerun, RunFilter};

use super::RECHECK_AFTER;
use crate::{Backfills, Error, Result};

/// No backfill has more dates.
const MAX_DATES: usize = 10_000;

/// No backfill has more runs under way.
const MAX_PARALLEL: u32 = 100;

/// How many of the last runs the estimate is based on.
const HISTORY: u32 = 20;

/// A backfill that someone requests.
#[derive(Clone, PartialEq, Debug)]
pub struct NewBackfill {
    /// The id of the backfill; two requests with one id create one.
    pub id: BackfillId,
    /// The tenant that its runs belong to.
    pub tenant: TenantId,
    /// The name of the workflow.
    pub workflow: String,
    /// The schedule whose dates it covers; may be left out if the workflow has one schedule or none.
    pub schedule: Option<String>,
    /// The first date: an instant, or a local time in the schedule's time zone.
    pub from: String,
    /// The last date, inclusive; the whole day if it is a day.
    pub to: String,
    /// The maximum number of active runs.
    pub max_parallel: u32,
    /// How many turns it gets where slots are short, for ten turns of the tenant's live tasks.
    pub weight: u32,
    /// Which of its dates get a run.
    pub rerun: Rerun,
    /// The number of the version that its runs take; none for the active one.
    pub version: Option<i32>,
    /// The caller who requests it.
    pub by: String,
}

/// The plan of a backfill that does not exist yet.
#[derive(Clone, PartialEq, Debug)]
pub struct BackfillPlan {
    /// The backfill as it would be created.
    pub record: BackfillRecord,
    /// The dates that get a run.
    pub dates: Vec<BackfillDate>,
    /// The dates that have one already.
    pub existing: BTreeMap<Instant, (RunId, RunState)>,
    /// How many dates there are in all.
    pub in_range: usize,
    /// How long it will take, if runs take as long as the last ones did.
    pub expected: Option<TimeDelta>,
}

impl Backfills<'_> {
    /// Works out what a backfill would do, and changes nothing.
    pub async fn plan(self, new: &NewBackfill) -> Result<BackfillPlan> {
        if !(1..=MAX_PARALLEL).contains(&new.max_parallel) {
            return refuse(format!(
                "`max_parallel` is {}, and must be from 1 to {MAX_PARALLEL}",
                new.max_parallel
            ));
        }
        if !(1..LIVE_WEIGHT).contains(&new.weight) {
            return refuse(format!(
                "`weight` is {}, and must be from 1 to {}: live runs have {LIVE_WEIGHT}",
                new.weight,
                LIVE_WEIGHT - 1
            ));
        }
        let now = self.runtime.clock.now();
        let mut record = BackfillRecord {
            id: new.id,
            tenant: new.tenant,
            workflow: new.workflow.clone(),
            schedule: String::new(),
            version: new.version,
            from: now,
            to: now,
            max_parallel: new.max_parallel,
            weight: new.weight,
            rerun: new.rerun,
            state: BackfillState::Running,
            created_at: now,
            created_by: new.by.clone(),
            finished_at: None,
            cancelled_by: None,
            due_at: Some(now + RECHECK_AFTER),
            problem: None,
            revision: 0,
        };
        let schedule = schedule(&self.version_of(&record).await?, new.schedule.as_deref())?;
        let calendar = Calendar::of(&schedule).map_err(|error| Error::BadBackfill(error.to_string()))?;
        record.schedule = schedule.name;
        record.from = bound("from", &new.from, calendar.zone(), false)?;
        record.to = bound("to", &new.to, calendar.zone(), true)?.min(now);
        if record.from > record.to {
            return refuse(
                "it would end before it begins, or begins in the future: see `from` and `to`".to_owned(),
            );
        }
        self.fill_in(record, &calendar).await
    }

    async fn fill_in(self, record: BackfillRecord, calendar: &Calendar) -> Result<BackfillPlan> {
        let BackfillRecord { tenant, from, to, .. } = record;
        let first = calendar.following(from - TimeDelta::microseconds(1));
        let all: Vec<Instant> = first.take_while(|date| *date <= to).take(MAX_DATES + 1).collect();
        if all.len() > MAX_DATES {
            return refuse(format!("there are more than {MAX_DATES} dates from `from` to `to`: split it"));
        }
        let mut existing =
            self.runtime.store.runs_of_dates(tenant, &record.workflow, &record.schedule, from, to).await?;
        // In order, so that a long backfill is not searched once for each of its runs.
        existing.retain(|date, _| all.binary_search(date).is_ok());
        let mut before = calendar.before(from);
        let mut dates = Vec::new();
        for date in &all {
            let run = existing.get(date).copied();
            if record.rerun.wants(run.map(|(_, state)| state)) {
                dates.push(BackfillDate {
                    date: *date,
                    interval_start: before.unwrap_or(*date),
                    step: DateStep::Waiting,
                    run: run.map(|(run, _)| run),
                    redo: run.is_some(),
                });
            }
            before = Some(*date);
        }
        let expected = self.expected(&record, dates.len()).await?;
        Ok(BackfillPlan { in_range: all.len(), record, dates, existing, expected })
    }

    /// How long the runs take, a few at a time, if each takes as long as the middle one of the last.
    async fn expected(self, record: &BackfillRecord, runs: usize) -> Result<Option<TimeDelta>> {
        let filter = RunFilter {
            workflow: Some(record.workflow.clone()),
            state: Some(RunState::Succeeded),
            limit: HISTORY,
            ..RunFilter::default()
        };
        let last = self.runtime.store.runs(record.tenant, &filter).await?;
        let mut took: Vec<TimeDelta> =
            last.iter().filter_map(|found| Some(found.run.finished_at? - found.run.started_at?)).collect();
        took.sort();
        let rounds = runs.div_ceil(record.max_parallel as usize) as i32;
        Ok(took.get(took.len() / 2).map(|middle| *middle * rounds))
    }

    /// Begins a backfill. Beginning it again changes nothing.
    pub async fn start(self, plan: &BackfillPlan) -> Result<()> {
        self.runtime.store.create_backfill(&plan.record, &plan.dates).await?;
        self.advance(plan.record.id).await
    }

    /// The definition that a backfill's runs are of.
    pub(super) async fn version_of(self, record: &BackfillRecord) -> Result<Workflow> {
        let (tenant, name) = (record.tenant, &record.workflow);
        let found = self.runtime.store.workflow(tenant, name).await?;
        let found = found.ok_or_else(|| Error::NoSuchWorkflow(name.clone()))?;
        let Some(number) = record.version else { return Ok(found.version.workflow) };
        let version = self.runtime.store.numbered_version(tenant, name, number).await?;
        let unknown = || Error::BadBackfill(format!("workflow `{name}` has no version {number}"));
        version.map(|version| version.workflow).ok_or_else(unknown)
    }
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::BadBackfill(why))
}

/// The schedule whose dates are meant. A workflow that has none has a date each day.
fn schedule(workflow: &Workflow, name: Option<&str>) -> Result<Schedule> {
    let known = || {
        let names: Vec<String> =
            workflow.schedules.iter().map(|schedule| format!("`{}`", schedule.name)).collect();
        names.join(", ")
    };
    match (workflow.schedules.as_slice(), name) {
        ([], None) => Ok(Schedule {
            name: Schedule::ONLY.to_owned(),
            when: When::Cron("0 0 * * *".to_owned()),
            timezone: "UTC".to_owned(),
            inputs: Map::new(),
            catchup: Catchup::None,
            cap: None,
            max_active_runs: None,
            overlap: None,
            paused: false,
        }),
        ([only], None) => Ok(only.clone()),
        (_, None) => {
            refuse(format!("workflow `{}` has several schedules; name one of {}", workflow.name, known()))
        }
        (schedules, Some(name)) => match schedules.iter().find(|schedule| schedule.name == name) {
            Some(schedule) => Ok(schedule.clone()),
            None => {
                refuse(format!("workflow `{}` has no schedule `{name}`, only {}", workflow.name, known()))
            }
        },
    }
}

/// An instant that a person wrote; a day is meant as a whole.
fn bound(which: &str, text: &str, zone: Tz, is_end: bool) -> Result<Instant> {
    let day = NaiveDate::parse_from_str(text.trim(), "%Y-%m-%d").ok().filter(|_| is_end);
    let found = match day.and_then(|day| day.succ_opt()) {
        Some(next) => Some(wall::midnight(zone, next) - TimeDelta::microseconds(1)),
        None => wall::read(text, zone),
    };
    let wrong = || {
        Error::BadBackfill(format!(
            "`{which}` is `{text}`: write, for example, `2026-01-31` or `2026-01-31T18:00:00Z`"
        ))
    };
    found.ok_or_else(wrong)
}
