//! What the rows must say once all runs have ended, and how time passes in them.

use std::collections::BTreeMap;

use model::{EventKind, Instant, RunId, RunState};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use store::{RunRecord, Runs};
use uuid::Uuid;

use crate::cluster::Cluster;

/// Rows that exist only while work is left to do, or that belong to a deleted parent.
const TEMPORARY: [&str; 13] = [
    "timers",
    "outbox",
    "workers",
    "shared_task_waiters",
    "slot_waiters",
    "limits where used > 0 or waiting > 0",
    "shared_tasks where finished_at is null",
    "signals",
    "dead_letters",
    "tasks where not exists (select from runs where runs.id = tasks.run)",
    "items where not exists (select from tasks where tasks.run = items.run and tasks.idx = items.idx)",
    "outputs where not exists (select from tasks where tasks.run = outputs.run and tasks.idx = outputs.idx)",
    "attempts where not exists (select from tasks where tasks.run = attempts.run and tasks.idx = attempts.idx)",
];

/// The temporary rows that exist.
pub(crate) async fn leftovers(url: &str) -> Vec<String> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let mut left = Vec::new();
    for table in TEMPORARY {
        let count = AssertSqlSafe(format!("select count(*) from {table}"));
        let count: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
        if count > 0 {
            left.push(format!("{count} in {table}"));
        }
    }
    left
}

/// When the first task succeeded or the first run ended after an instant.
pub(crate) async fn first_end_since(url: &str, since: Instant) -> Option<Instant> {
    let first = "select least(
        (select min(finished_at) from tasks where state = 'succeeded' and finished_at > $1),
        (select min(finished_at) from runs where finished_at > $1))";
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(first).bind(since).fetch_one(&mut connection).await.unwrap()
}

/// The unfinished runs, and the finished ones.
pub(crate) async fn runs(url: &str) -> (Vec<RunId>, Vec<RunId>) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let all = sqlx::query_as("select id, finished_at is not null from runs");
    let all: Vec<(Uuid, bool)> = all.fetch_all(&mut connection).await.unwrap();
    let (ended, open): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, ended)| *ended);
    let ids = |rows: Vec<(Uuid, bool)>| rows.into_iter().map(|(id, _)| RunId(id)).collect();
    (ids(open), ids(ended))
}

/// Makes everything that waits for time two minutes older: silent workers are dead, dispatched tasks are lost, rechecks
/// are due.
pub(crate) async fn let_two_minutes_pass(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for statement in [
        // Once for each heartbeat: a changed time counts as another heartbeat.
        "update workers set heartbeat_at = heartbeat_at - interval '2 minutes' where heartbeat_at > now() - interval '1 minute'",
        "update outbox set created_at = created_at - interval '2 minutes'",
    ] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    // Runs are locked first and in id order, as in every transaction.
    let mut transaction = connection.begin().await.unwrap();
    let open = "select id from runs where finished_at is null order by id for update";
    let open: Vec<Uuid> = sqlx::query_scalar(open).fetch_all(&mut *transaction).await.unwrap();
    for statement in [
        "update tasks set since = since - interval '2 minutes' where state = 'dispatched' and run = any($1)",
        "update runs set recheck_at = recheck_at - interval '2 minutes' where id = any($1)",
    ] {
        sqlx::query(statement).bind(&open).execute(&mut *transaction).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// Checks that a run succeeded, that each of its tasks succeeded once, and that each of those ran at least once.
pub(crate) async fn assert_consistent(cluster: &Cluster, record: &RunRecord) {
    let run = record.run.id;
    assert_eq!(record.run.state, RunState::Succeeded, "run {run}: {:?}", record.run.error);
    let (mut released, mut succeeded) = (BTreeMap::new(), BTreeMap::new());
    for (_, event) in cluster.store.events(run, 0, 100_000).await.unwrap() {
        let Some(task) = event.task else { continue };
        match event.kind {
            EventKind::TaskDispatched => *released.entry((task, event.attempt)).or_insert(0) += 1,
            EventKind::TaskSucceeded => *succeeded.entry(task).or_insert(0) += 1,
            _ => {}
        }
    }
    assert!(released.values().all(|times| *times == 1), "each attempt was released once: {released:?}");
    assert_eq!(succeeded.len(), 10, "every task of run {run} succeeded");
    assert!(succeeded.values().all(|times| *times == 1), "exactly once: {succeeded:?}");
    let done = std::fs::read_to_string(&cluster.mark).unwrap();
    for (task, least) in [("first", 1), ("split", 3), ("wavers", 1)] {
        let times = done.lines().filter(|line| *line == format!("{run} {task}")).count();
        assert!(times >= least, "{task} of run {run} ran {times} times");
    }
}

/// Checks that no temporary row is left.
pub(crate) async fn assert_nothing_is_left_over(cluster: &Cluster) {
    let left = leftovers(&cluster.postgres.url).await;
    assert!(left.is_empty(), "{left:?}");
}
