//! Runs that come into being, with all their rows: one statement for what each of them has, however many they are.

use std::collections::BTreeSet;

use model::{Changes, RunId};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::columns::{EVENTS, FACTS, RUNS, RunRow, TASKS, bind_rows};
use super::outbox::PendingMessages;
use super::statements::INSERT_RUNS;
use super::{picking, saves};
use crate::{Birth, Created, Error, Facts, Result, normal};

/// Creates runs, but for those whose id or logical date is taken.
pub(super) async fn create(
    connection: &mut PgConnection,
    births: &[Birth],
    outbox: &mut PendingMessages,
) -> Result<Vec<Created>> {
    let mut seen = BTreeSet::new();
    let firsts: Vec<&Birth> = births.iter().filter(|birth| seen.insert(birth.changes.run.id)).collect();
    let mut new = insert(connection, &firsts).await?;
    let (mut born, mut labelled, mut created) = (Vec::new(), Vec::new(), Vec::new());
    for birth in births {
        if new.remove(&birth.changes.run.id) {
            born.push(birth.changes.clone());
            labelled.push(birth);
            created.push(Created::New);
        } else {
            created.push(who_is_there(connection, birth).await?);
        }
    }
    picking::label(connection, &labelled).await?;
    saves::append(connection, &born).await?;
    outbox.add(&born);
    Ok(created)
}

/// Writes runs with the rows that every one of them has. Returns the new ones.
async fn insert(connection: &mut PgConnection, births: &[&Birth]) -> Result<BTreeSet<RunId>> {
    let changes: Vec<Changes> = births.iter().map(|birth| birth.changes.clone()).collect();
    let mut runs: Vec<RunRow> =
        births.iter().map(|birth| RunRow::new(&birth.changes, &birth.facts)).collect();
    runs.sort_by_key(|row| row.run.id);
    let facts: Vec<(RunId, Facts)> =
        births.iter().map(|birth| (birth.changes.run.id, normal::facts(&birth.facts))).collect();
    let tasks = saves::task_rows(&changes, |each| each.tasks.iter().chain(&each.new_tasks));
    let insert = bind_rows(sqlx::query(INSERT_RUNS.as_str()), RUNS, &runs);
    let insert = bind_rows(bind_rows(insert, FACTS, &facts), TASKS, &tasks);
    let created = bind_rows(insert, EVENTS, saves::event_rows(&changes)).fetch_all(connection).await?;
    created.iter().map(|row| Ok(RunId(row.try_get::<Uuid, _>("id")?))).collect()
}

/// Which run stood in the way of a new one: the one of its id, before the one of its date.
async fn who_is_there(connection: &mut PgConnection, birth: &Birth) -> Result<Created> {
    let run = &birth.changes.run;
    let there = sqlx::query(
        "select id from runs where id = $1 or (tenant = $2 and workflow = $3 and logical_date = $4 and schedule = $5)
         order by id <> $1 limit 1",
    )
    .bind(run.id.0)
    .bind(run.tenant.0)
    .bind(normal::text(&run.workflow))
    .bind(birth.facts.logical_date)
    .bind(normal::schedule_of(&birth.facts))
    .fetch_optional(connection)
    .await?
    .ok_or(Error::Conflict)?;
    let id = RunId(there.try_get("id")?);
    Ok(if id == run.id { Created::Already } else { Created::DateTaken(id) })
}
