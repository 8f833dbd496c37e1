//! The creation of runs with all their rows: one statement per table, however many runs there are.

use std::collections::BTreeSet;

use model::{Changes, RunId};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::columns::{EVENTS, FACTS, RUNS, RunRow, TASKS, bind_rows};
use super::outbox::PendingMessages;
use super::statements::INSERT_RUNS;
use super::{labels, saves};
use crate::{Created, Error, Facts, NewRunRecord, Result, normal};

/// Creates runs, but for those whose id or logical date is taken.
pub(super) async fn create(
    connection: &mut PgConnection,
    new_runs: &[NewRunRecord],
    outbox: &mut PendingMessages,
) -> Result<Vec<Created>> {
    let mut seen = BTreeSet::new();
    let firsts: Vec<&NewRunRecord> =
        new_runs.iter().filter(|new_run| seen.insert(new_run.changes.run.id)).collect();
    let mut new = insert(connection, &firsts).await?;
    let (mut inserted, mut labelled, mut created) = (Vec::new(), Vec::new(), Vec::new());
    for new_run in new_runs {
        if new.remove(&new_run.changes.run.id) {
            inserted.push(new_run.changes.clone());
            labelled.push(new_run);
            created.push(Created::New);
        } else {
            created.push(existing(connection, new_run).await?);
        }
    }
    labels::insert(connection, &labelled).await?;
    saves::append(connection, &inserted).await?;
    outbox.add(&inserted);
    Ok(created)
}

/// Writes runs with the rows that every one of them has. Returns the new ones.
async fn insert(connection: &mut PgConnection, new_runs: &[&NewRunRecord]) -> Result<BTreeSet<RunId>> {
    let changes: Vec<Changes> = new_runs.iter().map(|new_run| new_run.changes.clone()).collect();
    let mut runs: Vec<RunRow> =
        new_runs.iter().map(|new_run| RunRow::new(&new_run.changes, &new_run.facts)).collect();
    runs.sort_by_key(|row| row.run.id);
    let facts: Vec<(RunId, Facts)> =
        new_runs.iter().map(|new_run| (new_run.changes.run.id, normal::facts(&new_run.facts))).collect();
    let tasks = saves::task_rows(&changes, |each| each.tasks.iter().chain(&each.new_tasks));
    let insert = bind_rows(sqlx::query(INSERT_RUNS.as_str()), RUNS, &runs);
    let insert = bind_rows(bind_rows(insert, FACTS, &facts), TASKS, &tasks);
    let created = bind_rows(insert, EVENTS, saves::event_rows(&changes)).fetch_all(connection).await?;
    created.iter().map(|row| Ok(RunId(row.try_get::<Uuid, _>("id")?))).collect()
}

/// The run because of which a new one was not created: the one with its id, else the one with its date.
async fn existing(connection: &mut PgConnection, new_run: &NewRunRecord) -> Result<Created> {
    let run = &new_run.changes.run;
    let there = sqlx::query(
        "select id from runs where id = $1 or (tenant = $2 and workflow = $3 and logical_date = $4 and schedule = $5)
         order by id <> $1 limit 1",
    )
    .bind(run.id.0)
    .bind(run.tenant.0)
    .bind(normal::text(&run.workflow))
    .bind(new_run.facts.logical_date)
    .bind(normal::schedule_of(&new_run.facts))
    .fetch_optional(connection)
    .await?
    .ok_or(Error::Conflict)?;
    let id = RunId(there.try_get("id")?);
    Ok(if id == run.id { Created::Already } else { Created::DateTaken(id) })
}
