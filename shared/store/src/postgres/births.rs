//! Runs that come into being, with all their rows: one statement for what each of them has, however many they are.

use std::collections::BTreeSet;

use model::change::Checkup;
use model::{Changes, Planned, RunId};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::outbox::PendingMessages;
use super::picking;
use super::rows::{self, column, int};
use super::saves::{self, Bound};
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

/// Writes runs with what every one of them has. Answers which are new.
async fn insert(connection: &mut PgConnection, births: &[&Birth]) -> Result<BTreeSet<RunId>> {
    let changes: Vec<Changes> = births.iter().map(|birth| birth.changes.clone()).collect();
    let insert = sqlx::query(include_str!("../../queries/insert_births.sql"));
    let insert = saves::bind_all_tasks(bind_facts(bind_runs(insert, births), births), &changes);
    let born = saves::bind_events(insert, &changes).fetch_all(connection).await?;
    born.iter().map(|row| Ok(RunId(row.try_get::<Uuid, _>("id")?))).collect()
}

fn bind_runs(query: Bound, births: &[&Birth]) -> Bound {
    let mut rows: Vec<(model::Run, &Birth)> =
        births.iter().map(|birth| (normal::run(&birth.changes.run), *birth)).collect();
    rows.sort_by_key(|(run, _)| run.id);
    let parent = |run: &model::Run| run.parent;
    query
        .bind(column(&rows, |(run, _)| run.id.0))
        .bind(column(&rows, |(run, _)| run.tenant.0))
        .bind(column(&rows, |(run, _)| normal::text(&run.workflow).into_owned()))
        .bind(column(&rows, |(run, _)| run.version.0))
        .bind(column(&rows, |(run, _)| run.state.name()))
        .bind(column(&rows, |(run, _)| run.revision))
        .bind(column(&rows, |(run, _)| saves::array(&run.counts.to_array())))
        .bind(column(&rows, |(run, _)| int(run.failures)))
        .bind(column(&rows, |(run, _)| run.events))
        .bind(column(&rows, |(run, _)| run.created_at))
        .bind(column(&rows, |(run, _)| run.started_at))
        .bind(column(&rows, |(run, _)| run.finished_at))
        .bind(column(&rows, |(run, _)| run.error.clone()))
        .bind(column(&rows, |(_, birth)| match normal::checkup(&birth.changes) {
            Checkup::At(instant) | Checkup::By(instant) => Some(instant),
            Checkup::Keep | Checkup::Never => None,
        }))
        .bind(column(&rows, |(_, birth)| birth.facts.logical_date))
        .bind(column(&rows, |(run, _)| parent(run).map(|parent| parent.key.run.0)))
        .bind(column(&rows, |(run, _)| parent(run).map(|parent| int(parent.key.task.0))))
        .bind(column(&rows, |(run, _)| parent(run).map(|parent| int(parent.attempt))))
        .bind(column(&rows, |(run, _)| parent(run).map(|parent| parent.waits)))
        .bind(column(&rows, |(run, _)| int(run.depth)))
        .bind(column(&rows, |(run, _)| run.lane.clone()))
        .bind(column(&rows, |(run, _)| run.held))
        .bind(column(&rows, |(run, _)| run.priority))
        .bind(column(&rows, |(_, birth)| normal::schedule_of(&birth.facts)))
}

fn bind_facts(query: Bound, births: &[&Birth]) -> Bound {
    let rows: Vec<_> =
        births.iter().map(|birth| (birth.changes.run.id, normal::facts(&birth.facts))).collect();
    query
        .bind(column(&rows, |(run, _)| run.0))
        .bind(column(&rows, |(_, facts)| rows::json(&facts.inputs)))
        .bind(column(&rows, |(_, facts)| rows::json(&facts.labels)))
        .bind(column(&rows, |(_, facts)| facts.trigger_kind.clone()))
        .bind(column(&rows, |(_, facts)| facts.trigger_by.clone()))
        .bind(column(&rows, |(_, facts)| planned(facts).map(|it| normal::text(&it.schedule).into_owned())))
        .bind(column(&rows, |(_, facts)| planned(facts).map(|it| it.interval.start)))
        .bind(column(&rows, |(_, facts)| planned(facts).map(|it| it.interval.end)))
}

fn planned(facts: &Facts) -> Option<&Planned> {
    facts.planned.as_ref()
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
