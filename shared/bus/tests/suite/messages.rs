//! A message of each type.

use chrono::DateTime;
use model::message::{
    CallbackDue, CancelRequested, ChildFinished, ConcurrencyGroupFreed, Notice, PollDue, PollTarget,
    RunFinished, RunNudged, RunRequested, SharedFinished, TaskDispatched, TaskFinished, TaskReported,
    TaskResult, TimerArmed,
};
use model::{
    Child, Failure, Instant, Message, Parent, RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId,
    VersionId,
};
use serde_json::{Map, json};
use uuid::Uuid;

pub(crate) fn run(n: u128) -> RunId {
    RunId(Uuid::from_u128(0x018f_4e3a_0000_7000_8000_0000_0000_0000 + n))
}

pub(crate) fn noon() -> Instant {
    DateTime::from_timestamp_millis(1_800_000_000_250).unwrap()
}

/// A message with the smallest body.
pub(crate) fn nudge(n: u128) -> Message {
    Message::RunNudged(RunNudged { run: run(n) })
}

/// An attempt of that queue.
pub(crate) fn work(queue: &str, n: u128) -> Message {
    let key = TaskKey { run: run(n), task: TaskIndex(7) };
    Message::TaskDispatched(TaskDispatched {
        key,
        tenant: TenantId::DEFAULT,
        attempt: 1,
        version: VersionId(1),
        queue: queue.into(),
        child: Some(Child { of: TaskIndex(2), item: 4 }),
        give_up_at: Some(noon()),
    })
}

/// One message of each type.
pub(crate) fn one_of_each(queue: &str) -> Vec<Message> {
    let key = TaskKey { run: run(2), task: TaskIndex(7) };
    let parent = Parent { key, attempt: 1, waits: true, depth: 1 };
    let (run, tenant, workflow) = (run(1), TenantId::DEFAULT, String::from("nightly"));
    vec![
        Message::RunRequested(RunRequested {
            run,
            tenant,
            workflow: workflow.clone(),
            inputs: Map::from_iter([("text".into(), json!("ünï ✓ \" \\ \n"))]),
            logical_date: Some(noon()),
            labels: Map::new(),
            trigger: "message".into(),
            parent: Some(parent),
            priority: 0,
        }),
        Message::CancelRequested(CancelRequested { run, actor: "ana".into(), reason: "enough".into() }),
        work(queue, 1),
        Message::TaskReported(TaskReported {
            key: TaskKey { run, task: TaskIndex(7) },
            attempt: 2,
            worker: None,
            started_at: noon(),
            result: TaskResult::Succeeded(json!({ "rows": 12_345_678_901_234_567_u64 })),
        }),
        nudge(1),
        Message::ChildFinished(ChildFinished {
            parent,
            child: run,
            version: VersionId(1),
            state: RunState::Failed,
            error: Some("no".into()),
        }),
        Message::SharedFinished(SharedFinished {
            owner: parent.key,
            state: TaskState::Failed,
            failure: Some(Failure::permanent("no")),
        }),
        Message::ConcurrencyGroupFreed(ConcurrencyGroupFreed {
            tenant,
            workflow: workflow.clone(),
            group: "customer 7".into(),
        }),
        Message::CallbackDue(CallbackDue {
            run,
            tenant,
            version: VersionId(1),
            task: Some(TaskIndex(7)),
            child: None,
            place: 0,
            event: json!({"on": "failure"}),
        }),
        Message::PollDue(PollDue {
            tenant,
            queue: queue.into(),
            target: PollTarget::Task {
                key,
                attempt: 1,
                version: VersionId(1),
                child: None,
                since: noon(),
                failed: true,
            },
        }),
        Message::Notice(Notice { topic: "alerts".into(), run, body: json!({"text": "it failed"}) }),
        Message::TimerArmed(TimerArmed { wake_at: noon() }),
        Message::RunFinished(RunFinished {
            run,
            tenant,
            workflow: workflow.clone(),
            state: RunState::Succeeded,
            created_at: Some(noon()),
            finished_at: noon(),
        }),
        Message::TaskFinished(TaskFinished {
            run,
            tenant,
            workflow,
            task: TaskIndex(7),
            name: "load".into(),
            kind: Some(model::TaskKind::Bash),
            state: TaskState::Succeeded,
            finished_at: noon(),
        }),
    ]
}
