//! Statements put together from the lists of columns, once per process.

use std::sync::LazyLock;

use super::columns::{
    ATTEMPTS, BACKFILLS, EVENTS, FACTS, Parameters, RUNS, SCHEDULES, SLOT_WAITERS, TASKS, TIMERS,
    assignments, names, names_in, replacements,
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

/// Writes tasks in wait queues, and those that were granted their slots.
pub(super) static UPSERT_SLOT_WAITERS: Statement = LazyLock::new(|| {
    let (rows, set) = (Parameters::default().rows(SLOT_WAITERS), replacements(SLOT_WAITERS));
    format!("insert into slot_waiters {rows} on conflict (run, idx) do update set {set}")
});

/// Creates schedules, which must not exist yet.
pub(super) static INSERT_SCHEDULES: Statement =
    LazyLock::new(|| format!("insert into schedules {}", Parameters::default().rows(SCHEDULES)));

/// Writes schedules over the revisions they were read at.
pub(super) static UPDATE_SCHEDULES: Statement = LazyLock::new(|| {
    let (given, set) = (Parameters::default().changes(SCHEDULES), assignments(SCHEDULES));
    format!(
        "update schedules set {set}, revision = schedules.revision + 1 from {given}
          where (schedules.tenant, schedules.workflow, schedules.name, schedules.revision)
              = (given.tenant, given.workflow, given.name, given.revision)"
    )
});

/// Creates backfills, but for those that exist.
pub(super) static INSERT_BACKFILLS: Statement = LazyLock::new(|| {
    format!("insert into backfills {} on conflict do nothing", Parameters::default().rows(BACKFILLS))
});

/// Writes backfills over the revisions they were read at.
pub(super) static UPDATE_BACKFILLS: Statement = LazyLock::new(|| {
    let (given, set) = (Parameters::default().changes(BACKFILLS), assignments(BACKFILLS));
    format!(
        "update backfills set {set}, revision = backfills.revision + 1 from {given}
          where backfills.id = given.id and backfills.revision = given.revision"
    )
});

/// Locks runs in id order, so that transactions that lock several cannot deadlock. A run that had to be waited for is
/// returned as it is after the wait.
pub(super) static LOCK_RUNS: Statement =
    LazyLock::new(|| format!("select {} from runs where id = any($1) order by id for update", names(RUNS)));

/// Runs of a tenant by id. Rows are found by their ids; no index serves the comparison of tenants.
pub(super) static FIND_RUNS: Statement =
    LazyLock::new(|| run_records("run_facts.inputs", "", &format!("where {OF_TENANT_BY_ID}")));

/// The newest runs of a tenant. A filter that is null lets everything pass; each kind of filter has an index in this order,
/// so a list costs its own length.
pub(super) static LIST_RUNS: Statement = LazyLock::new(|| {
    let rest = "where runs.tenant = $1
                  and ($2::text is null or runs.workflow = $2)
                  and ($3::text is null or runs.state = $3)
                  and ($4::uuid is null or runs.parent_run = $4)
                order by runs.created_at desc, runs.id desc
                limit $5";
    run_records("run_facts.inputs", "", rest)
});

/// Runs of a tenant in the order of the ids given, for a list: inputs of more than $3 bytes are left out, and their size and
/// beginning are there instead. Long inputs take a while to unpack, so that is done once.
pub(super) static LIST_RUNS_BY_ID: Statement = LazyLock::new(|| {
    let is_long = "octet_length(written.inputs) > $3";
    let inputs = format!(
        "case when {is_long} then '{{}}'::json else run_facts.inputs end as inputs,
         case when {is_long} then octet_length(written.inputs) end as inputs_bytes,
         case when {is_long} then left(written.inputs, $3) end as inputs_head"
    );
    let written = "cross join lateral (select run_facts.inputs::text as inputs offset 0) as written";
    let rest = format!("where {OF_TENANT_BY_ID} order by array_position($2::uuid[], runs.id)");
    run_records(&inputs, written, &rest)
});

const OF_TENANT_BY_ID: &str = "runs.id = any ($2::uuid[]) and runs.tenant is not distinct from $1";

/// Runs as people see them: with what they were created with, the number of their version, and the task that started them.
fn run_records(inputs: &str, join: &str, rest: &str) -> String {
    let columns = names_in("runs", RUNS);
    format!(
        "select {columns}, {inputs}, run_facts.labels, run_facts.trigger_kind, run_facts.trigger_by,
                run_facts.schedule as planned_schedule, run_facts.interval_start, run_facts.interval_end,
                versions.number, parents.version as parent_version,
                starters.child_of as starter_child_of, starters.item as starter_item
           from runs
           join run_facts on run_facts.run = runs.id
           {join}
           join versions on versions.id = runs.version
           left join runs as parents on parents.id = runs.parent_run
           left join tasks as starters on starters.run = runs.parent_run and starters.idx = runs.parent_idx
          {rest}"
    )
}

/// A page of unfinished runs in id order, with what their tasks add up to: how many are in each of the given states, how
/// many were dispatched at or before the given instant, and when one last changed.
pub(super) static INSPECT_RUNS: Statement = LazyLock::new(|| {
    let columns = names(RUNS);
    format!(
        "select {columns},
                array(select count(tasks.idx)::int
                        from unnest($4::text[]) with ordinality as known (state, place)
                        left join tasks on tasks.run = runs.id and tasks.state = known.state
                       group by known.place order by known.place) as seen,
                (select count(*)::int from tasks
                  where tasks.run = runs.id and tasks.state = 'dispatched' and tasks.since <= $3) as unclaimed,
                (select max(tasks.since) from tasks where tasks.run = runs.id) as moved_at
           from (select {columns}
                   from runs
                  where finished_at is null and ($1::uuid is null or id > $1)
                  order by id
                  limit $2) as runs
          order by id"
    )
});

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
        &UPSERT_SLOT_WAITERS,
        &INSERT_SCHEDULES,
        &UPDATE_SCHEDULES,
        &INSERT_BACKFILLS,
        &UPDATE_BACKFILLS,
        &LOCK_RUNS,
        &FIND_RUNS,
        &LIST_RUNS,
        &LIST_RUNS_BY_ID,
        &INSPECT_RUNS,
        &SELECT_TASKS,
        &SELECT_ALL_TASKS,
        &SELECT_UNFINISHED_TASKS,
    ];
    all.into_iter().map(|statement| statement.as_str()).collect()
}
