//! Statements put together from the lists of columns, once per process.

use std::sync::LazyLock;

use super::columns::{
    ATTEMPTS, EVENTS, FACTS, Parameters, RUNS, TASKS, TIMERS, assignments, names, replacements,
};

type Statement = LazyLock<String>;

/// Creates runs with the rows that every one of them has: facts, tasks and first events. No row is written for a run whose
/// id or whose schedule's logical date is taken. Returns the new ones. (`is true` makes Postgres look created runs up
/// instead of joining them row by row.)
pub(super) static INSERT_RUNS: Statement = LazyLock::new(|| {
    let mut parameters = Parameters::default();
    let runs = parameters.rows(RUNS);
    let (facts, tasks) = (parameters.rows(FACTS), parameters.rows(TASKS));
    let events = parameters.rows(EVENTS);
    let of_created = "where (given.run in (select id from created)) is true";
    format!(
        "with created as (insert into runs {runs} on conflict do nothing returning id),
              facts as (insert into run_facts {facts} {of_created}),
              new_tasks as (insert into tasks {tasks} {of_created}),
              new_events as (insert into events {events} {of_created})
         select id from created"
    )
});

/// Writes runs and tasks, each only over the revision it was read at, and their events. A row that was changed in between
/// is not written: the caller must count the rows, and roll back if one is missing. With `keep_recheck`, the recheck of a
/// run stays unless an earlier one is given: then no index is touched.
pub(super) static UPDATE_RUNS_AND_TASKS: Statement = LazyLock::new(|| {
    let mut parameters = Parameters::default();
    let (runs, tasks) = (parameters.changes(RUNS), parameters.changes(TASKS));
    let events = parameters.rows(EVENTS);
    let (set_runs, set_tasks) = (assignments(RUNS), assignments(TASKS));
    format!(
        "with written_runs as (
             update runs
                set {set_runs},
                    revision = runs.revision + 1,
                    recheck_at = case when given.keep_recheck then least(runs.recheck_at, given.recheck_at)
                                      else given.recheck_at end
               from {runs}
              where runs.id = given.id and runs.revision = given.revision
             returning 1
         ), written_tasks as (
             update tasks
                set {set_tasks},
                    revision = tasks.revision + 1
               from {tasks}
              where tasks.run = given.run and tasks.idx = given.idx and tasks.revision = given.revision
             returning 1
         ), new_events as (insert into events {events})
         select (select count(*) from written_runs) as runs, (select count(*) from written_tasks) as tasks"
    )
});

/// Creates the children of a fan-out.
pub(super) static INSERT_TASKS: Statement =
    LazyLock::new(|| format!("insert into tasks {}", Parameters::default().rows(TASKS)));

/// Keeps attempts that are over. An attempt that was given up on and succeeded after all is written again: the later
/// outcome stays.
pub(super) static UPSERT_ATTEMPTS: Statement = LazyLock::new(|| {
    let (rows, set) = (Parameters::default().rows(ATTEMPTS), replacements(ATTEMPTS));
    format!("insert into attempts {rows} on conflict (run, idx, attempt) do update set {set}")
});

/// Sets timers. Nothing has two of one kind: a later one replaces an earlier one.
pub(super) static UPSERT_TIMERS: Statement = LazyLock::new(|| {
    let (rows, set) = (Parameters::default().rows(TIMERS), replacements(TIMERS));
    format!("insert into timers {rows} on conflict (run, idx, kind) do update set {set}")
});

/// Locks runs in id order, so that transactions that lock several cannot deadlock. A run that had to be waited for is
/// returned as it is after the wait.
pub(super) static LOCK_RUNS: Statement =
    LazyLock::new(|| format!("select {} from runs where id = any($1) order by id for update", names(RUNS)));

/// The named tasks, and the fan-outs that any of them is a child of: those may come twice. Their runs are locked, so the
/// rows need no locks of their own.
pub(super) static SELECT_TASKS: Statement = LazyLock::new(|| {
    let columns = names(TASKS);
    format!(
        "with named as materialized (
             select tasks.* from unnest($1::uuid[], $2::int[]) as given (run, idx) join tasks using (run, idx)
         )
         select {columns} from named
          union all
         select {columns}
           from (select distinct run, child_of as idx from named where child_of is not null) as fans
           join tasks using (run, idx)"
    )
});

/// Every task of locked runs.
pub(super) static SELECT_ALL_TASKS: Statement =
    LazyLock::new(|| format!("select {} from tasks where run = any($1) order by run, idx", names(TASKS)));

/// Every task of locked runs that has not ended.
pub(super) static SELECT_UNFINISHED_TASKS: Statement = LazyLock::new(|| {
    let columns = names(TASKS);
    format!("select {columns} from tasks where run = any($1) and finished_at is null order by run, idx")
});

/// All of them, for tests that prepare and plan every statement.
pub(super) fn all() -> Vec<&'static str> {
    let all = [
        &INSERT_RUNS,
        &UPDATE_RUNS_AND_TASKS,
        &INSERT_TASKS,
        &UPSERT_ATTEMPTS,
        &UPSERT_TIMERS,
        &LOCK_RUNS,
        &SELECT_TASKS,
        &SELECT_ALL_TASKS,
        &SELECT_UNFINISHED_TASKS,
    ];
    all.into_iter().map(|statement| statement.as_str()).collect()
}
