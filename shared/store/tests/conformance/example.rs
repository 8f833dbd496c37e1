//! Small runs to make claims about.

use std::fmt::Debug;

use chrono::{TimeDelta, TimeZone, Utc};
use model::change::Recheck;
use model::message::RunNudged;
use model::{
    Changes, Event, EventKind, Instant, Message, Run, RunId, RunState, Task, TaskIndex, TaskKey, TaskState,
    TenantId, VersionId, WorkerId,
};
use serde_json::{Map, Value};
use store::{Created, Facts, NewRunRecord, NewVersion, Result, Store, Unsent};
use uuid::Uuid;

pub(crate) const TENANT: TenantId = TenantId::DEFAULT;

/// An instant, `seconds` after the one that all examples begin at.
pub(crate) fn at(seconds: i64) -> Instant {
    Utc.timestamp_opt(1_750_000_000, 123_456_000).unwrap() + TimeDelta::seconds(seconds)
}

pub(crate) fn run_id(number: u128) -> RunId {
    RunId(Uuid::from_u128(number))
}

pub(crate) fn worker(number: u128) -> WorkerId {
    WorkerId(Uuid::from_u128(number))
}

pub(crate) fn key(run: RunId, task: u32) -> TaskKey {
    TaskKey { run, task: TaskIndex(task) }
}

pub(crate) fn nudge(run: RunId) -> Message {
    Message::RunNudged(RunNudged { run })
}

pub(crate) fn event(second: i64) -> Event {
    Event {
        at: at(second),
        kind: EventKind::TaskStarted,
        task: Some(TaskIndex(1)),
        child: None,
        attempt: 1,
        actor: None,
        data: Value::Null,
    }
}

/// A definition called `name`, whose content has this `hash`.
pub(crate) fn definition(name: &str, hash: &str) -> NewVersion {
    let mut workflow = testkit::workflow("a -> b, a -> c");
    workflow.name = name.to_owned();
    workflow.description = Some(hash.to_owned());
    NewVersion {
        tenant: TENANT,
        workflow,
        source: format!("name: {name} # {hash}"),
        hash: hash.to_owned(),
        by: "ada".to_owned(),
        at: at(0),
    }
}

pub(crate) async fn version(store: &dyn Store) -> VersionId {
    store.register(&definition("example", "h1")).await.unwrap().version
}

/// A run of `tasks` pending tasks, with nothing else.
pub(crate) fn new_run(id: RunId, version: VersionId, tasks: u32) -> NewRunRecord {
    let mut changes = changes(Run::new(id, TENANT, "example", version, tasks, at(0)));
    changes.tasks = (0..tasks).map(|index| Task::pending(TaskIndex(index), at(0))).collect();
    NewRunRecord { facts: facts(), changes }
}

pub(crate) fn facts() -> Facts {
    Facts {
        inputs: Map::from_iter([("day".to_owned(), "2026-01-31".into())]),
        labels: Map::from_iter([("team".to_owned(), "green".into())]),
        trigger_kind: "api".to_owned(),
        trigger_by: "ada".to_owned(),
        logical_date: None,
        planned: None,
    }
}

/// Changes that write the run and nothing else.
pub(crate) fn changes(run: Run) -> Changes {
    Changes {
        run,
        tasks: vec![],
        new_tasks: vec![],
        items: vec![],
        withdrawn: vec![],
        outputs: vec![],
        attempts: vec![],
        events: vec![],
        timers: vec![],
        unset_timers: vec![],
        kept_signals: vec![],
        taken_signals: vec![],
        shares_ended: vec![],
        waits_over: vec![],
        offers: vec![],
        withdrawn_offers: vec![],
        outbox: vec![],
        recheck: Recheck::Keep,
    }
}

/// Adds events as a decision does: the run counts them.
pub(crate) fn record(changes: &mut Changes, events: &[Event]) {
    changes.events.extend_from_slice(events);
    changes.run.events += events.len() as i64;
}

pub(crate) async fn create(store: &dyn Store, new_run: &NewRunRecord) -> Result<Created> {
    let mut unit = store.begin().await?;
    let created = unit.create(std::slice::from_ref(new_run)).await?;
    unit.commit().await?;
    Ok(created[0])
}

/// A run of three tasks that is there.
pub(crate) async fn example(store: &dyn Store, number: u128) -> RunId {
    let id = run_id(number);
    let new_run = new_run(id, version(store).await, 3);
    assert_eq!(create(store, &new_run).await.unwrap(), Created::New);
    id
}

/// One unit: the run and its first three tasks are read, changed and saved.
pub(crate) async fn step(
    store: &dyn Store,
    run: RunId,
    change: impl FnOnce(&mut Changes),
) -> Result<Option<Unsent>> {
    let mut unit = store.begin().await?;
    let locked = unit.lock(&[run]).await?.remove(0);
    let tasks = unit.tasks(&[key(run, 0), key(run, 1), key(run, 2)]).await?;
    let mut changes = changes(locked);
    changes.tasks = tasks.into_iter().map(|(_, task)| task).collect();
    change(&mut changes);
    unit.save(&[changes]).await?;
    unit.commit().await
}

/// Lets a worker hold a task.
pub(crate) async fn hold(store: &dyn Store, run: RunId, task: u32, by: WorkerId) {
    step(store, run, |changes| {
        let task = &mut changes.tasks[task as usize];
        task.state = TaskState::Running;
        task.attempt = 1;
        task.worker = Some(by);
    })
    .await
    .unwrap();
}

/// Ends a run as a decision would.
pub(crate) async fn finish(store: &dyn Store, run: RunId) {
    step(store, run, |changes| {
        changes.run.state = RunState::Cancelled;
        changes.run.finished_at = Some(at(9));
    })
    .await
    .unwrap();
}

pub(crate) async fn run(store: &dyn Store, id: RunId) -> Run {
    store.run(TENANT, id).await.unwrap().unwrap().run
}

pub(crate) async fn task(store: &dyn Store, id: RunId, index: usize) -> Task {
    store.run_tasks(id, None, None, 100).await.unwrap().remove(index).task
}

/// Everything that readers can see of a run, to tell whether anything changed.
pub(crate) async fn picture(store: &dyn Store, id: RunId) -> impl PartialEq + Debug {
    (
        store.run(TENANT, id).await.unwrap(),
        store.run_tasks(id, None, None, 100).await.unwrap(),
        store.events(id, 0, 100).await.unwrap(),
        store.attempts(key(id, 0)).await.unwrap(),
        store.agenda(at(0)).await.unwrap(),
        store.unsent(at(1000), 100).await.unwrap(),
    )
}
