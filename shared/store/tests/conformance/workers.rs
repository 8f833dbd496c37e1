//! Claims about workers, the attempts they hold and the commands they receive.

use std::collections::BTreeMap;

use model::{
    Instant, Label, Labels, Lack, RemoteFacts, ResourceUsage, TaskState, TenantId, WorkerCommand,
    WorkerCommandKind, WorkerFacts,
};
use store::{Claim, Heartbeat, HeartbeatReply, Silence, Store};

use crate::Subject;
use crate::example::{TENANT, at, example, hold, key, run_id, step, worker};

fn held(run: u128, task: u32, attempt: u32, by: u128) -> Claim {
    Claim { key: key(run_id(run), task), attempt, worker: worker(by) }
}

fn silence(by: u128, second: i64) -> Silence {
    Silence { worker: worker(by), heartbeat_at: at(second) }
}

fn command(kind: WorkerCommandKind, second: i64) -> WorkerCommand {
    WorkerCommand { kind, actor: "ada".into(), reason: Some("it \0 hangs".into()), at: at(second) }
}

pub(crate) async fn beat(store: &dyn Store, by: u128, second: i64) -> HeartbeatReply {
    store.beat(&Heartbeat { worker: worker(by), facts: None, at: at(second) }).await.unwrap()
}

pub(crate) async fn a_beat_names_what_the_worker_holds(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(0, 1), (1, 2), (2, 1)] {
        hold(&*store, id, task, worker(by)).await;
    }
    step(&*store, id, |changes| {
        changes.tasks[2].state = TaskState::Cancelled;
        changes.tasks[2].worker = None;
        changes.tasks[2].finished_at = Some(at(1));
    })
    .await
    .unwrap();
    assert_eq!(beat(&*store, 1, 1).await, HeartbeatReply { holds: vec![held(1, 0, 1, 1)], command: None });
    assert_eq!(beat(&*store, 3, 2).await, HeartbeatReply { holds: vec![], command: None });
}

pub(crate) async fn remote_workers_are_not_our_own(store: Subject) {
    let facts = |remote: Option<RemoteFacts>| WorkerFacts {
        function: "execute".into(),
        queue: None,
        host: "here".into(),
        version: "1".into(),
        since: at(1),
        breakers: Vec::new(),
        remote,
    };
    let far = RemoteFacts {
        tenant: TENANT,
        name: "far".into(),
        slots: 1,
        labels: Labels::default(),
        types: None,
        usage: None,
    };
    for (by, facts) in [(1, None), (2, Some(facts(None))), (3, Some(facts(Some(far))))] {
        store.beat(&Heartbeat { worker: worker(by), facts, at: at(1) }).await.unwrap();
    }
    assert_eq!(store.own_workers().await.unwrap(), [silence(1, 1), silence(2, 1)]);
    store.mark_dead(&[silence(1, 1)], at(2)).await.unwrap();
    assert_eq!(store.own_workers().await.unwrap(), [silence(2, 1)]);
}

pub(crate) async fn attempts_of_a_silent_worker_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(2, 1), (0, 1), (1, 2)] {
        beat(&*store, by, 10).await;
        hold(&*store, id, task, worker(by)).await;
    }
    beat(&*store, 2, 20).await;
    assert_eq!(store.silent(at(10), 9).await.unwrap(), []);
    let silent = store.silent(at(11), 9).await.unwrap();
    assert_eq!(silent, [silence(1, 10)]);
    assert_eq!(store.lost(&silent, 9).await.unwrap(), [held(1, 0, 1, 1), held(1, 2, 1, 1)]);
    let silent = store.silent(at(21), 9).await.unwrap();
    assert_eq!(silent, [silence(1, 10), silence(2, 20)]);
    assert_eq!(store.silent(at(21), 1).await.unwrap(), [silence(1, 10)]);
    assert_eq!(store.lost(&silent, 2).await.unwrap(), [held(1, 0, 1, 1), held(1, 1, 1, 2)]);
}

pub(crate) async fn a_queue_is_served_while_a_remote_worker_of_it_lives(store: Subject) {
    let remote = |queue: &str, tenant: i32, types: Option<&[&str]>, labels: Labels| {
        let types = types.map(|types| types.iter().map(|name| (*name).to_owned()).collect());
        let (tenant, name) = (TenantId(tenant), "w".into());
        let remote = RemoteFacts { tenant, name, slots: 1, labels, types, usage: None };
        WorkerFacts { remote: Some(remote), ..facts(Some(queue)) }
    };
    let gpu = || Labels(BTreeMap::from([("gpu".to_owned(), Label::Flag(true))]));
    let workers = [
        (1, facts(Some("heavy"))),
        (2, remote("remote", 7, None, Labels::default())),
        (3, remote("remote-gpu", 8, Some(&["bash"]), gpu())),
        (4, remote("remote-gpu", 8, None, Labels::default())),
    ];
    for (by, facts) in workers {
        store.beat(&Heartbeat { worker: worker(by), facts: Some(facts), at: at(1) }).await.unwrap();
    }
    let lack = async |tenant: i32, queue: &str, kind: &str, requires: Labels| {
        store.served_queues().await.unwrap().lack(TenantId(tenant), queue, kind, &requires)
    };
    assert_eq!(lack(7, "heavy", "bash", Labels::default()).await, Some(Lack::Workers), "it is our own");
    assert_eq!(lack(7, "remote", "bash", Labels::default()).await, None);
    assert_eq!(lack(8, "remote", "bash", Labels::default()).await, Some(Lack::Workers), "of another tenant");
    assert_eq!(lack(7, "remote", "bash", gpu()).await, Some(Lack::Labels(gpu())));
    assert_eq!(lack(8, "remote-gpu", "bash", gpu()).await, None);
    assert_eq!(lack(8, "remote-gpu", "noop", gpu()).await, Some(Lack::Labels(gpu())));
    store.mark_dead(&[silence(4, 1)], at(90)).await.unwrap();
    assert_eq!(lack(8, "remote-gpu", "noop", gpu()).await, Some(Lack::Type("noop".into())));
    store.mark_dead(&[silence(2, 1)], at(90)).await.unwrap();
    assert_eq!(lack(7, "remote", "bash", Labels::default()).await, Some(Lack::Workers));
}

fn facts(queue: Option<&str>) -> WorkerFacts {
    WorkerFacts {
        function: "execute".into(),
        queue: queue.map(str::to_owned),
        host: "here".into(),
        version: "1".into(),
        since: at(0),
        breakers: Vec::new(),
        remote: None,
    }
}

pub(crate) async fn a_worker_that_sends_a_heartbeat_again_loses_nothing_and_is_not_forgotten(store: Subject) {
    let id = example(&*store, 1).await;
    for (task, by) in [(0, 1), (1, 2)] {
        beat(&*store, by, 10).await;
        hold(&*store, id, task, worker(by)).await;
    }
    let silent = store.silent(at(11), 9).await.unwrap();
    // Its clock may be far behind: any other instant is a sign of life.
    beat(&*store, 1, 11).await;
    assert_eq!(store.lost(&silent, 9).await.unwrap(), [held(1, 1, 1, 2)]);
    assert_eq!(store.mark_dead(&silent, at(12)).await.unwrap(), 1);
    assert_eq!(store.silent(at(99), 9).await.unwrap(), [silence(1, 11)]);
}

pub(crate) async fn attempts_of_a_worker_that_never_registered_are_lost(store: Subject) {
    let id = example(&*store, 1).await;
    hold(&*store, id, 0, worker(1)).await;
    assert_eq!(store.lost(&[], 9).await.unwrap(), [held(1, 0, 1, 1)]);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(Instant::UNIX_EPOCH));
}

pub(crate) async fn attempts_of_a_worker_that_left_are_lost_at_once(store: Subject) {
    let id = example(&*store, 1).await;
    beat(&*store, 1, 10).await;
    hold(&*store, id, 0, worker(1)).await;
    assert_eq!(store.farewell(worker(1)).await.unwrap(), None);
    assert_eq!(store.farewell(worker(1)).await.unwrap(), None);
    assert_eq!(store.lost(&[], 9).await.unwrap(), [held(1, 0, 1, 1)]);
}

pub(crate) async fn a_beat_that_was_overtaken_does_not_turn_time_back(store: Subject) {
    beat(&*store, 1, 20).await;
    beat(&*store, 1, 10).await;
    let heartbeat_at = store.agenda(at(0)).await.unwrap().worker.unwrap();
    assert!(
        heartbeat_at > at(20) && heartbeat_at < at(21),
        "it counts as a sign of life all the same: {heartbeat_at}"
    );
}

pub(crate) async fn silent_workers_are_dead_and_forgotten_after_a_day(store: Subject) {
    for (by, second) in [(1, 10), (2, 20), (3, 30)] {
        beat(&*store, by, second).await;
    }
    let silent = store.silent(at(30), 9).await.unwrap();
    assert_eq!(store.mark_dead(&silent, at(31)).await.unwrap(), 2);
    assert_eq!(store.mark_dead(&silent, at(32)).await.unwrap(), 0);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(at(30)));
    assert_eq!(store.silent(at(30), 9).await.unwrap(), [], "it is known that they are dead");
    let drain = command(WorkerCommandKind::Drain, 33);
    assert!(store.command_worker(worker(1), &drain).await.unwrap().is_some(), "a dead worker is listed");
    let day = 24 * 60 * 60;
    store.mark_dead(&[], at(31 + day)).await.unwrap();
    assert_eq!(store.command_worker(worker(1), &drain).await.unwrap(), None, "for a day");
}

pub(crate) async fn a_dead_worker_that_returns_is_alive_and_what_it_still_holds_was_lost(store: Subject) {
    let id = example(&*store, 1).await;
    beat(&*store, 1, 10).await;
    hold(&*store, id, 0, worker(1)).await;
    let silent = store.silent(at(11), 9).await.unwrap();
    store.mark_dead(&silent, at(12)).await.unwrap();
    assert_eq!(store.lost(&[], 9).await.unwrap(), [held(1, 0, 1, 1)]);
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, Some(Instant::UNIX_EPOCH));
    beat(&*store, 1, 13).await;
    assert_eq!(store.lost(&[], 9).await.unwrap(), []);
    assert_eq!(store.silent(at(99), 9).await.unwrap(), [silence(1, 13)]);
}

pub(crate) async fn a_lease_is_a_sign_of_life_once_in_a_while(store: Subject) {
    let every = chrono::TimeDelta::seconds(10);
    let check_in = async |second| {
        let sign = Heartbeat { worker: worker(1), facts: Some(remote()), at: at(second) };
        store.check_in(&sign, every).await.unwrap()
    };
    let last_seen = async || store.agenda(at(0)).await.unwrap().worker;
    for (second, seen) in [(0, 0), (9, 0), (10, 10), (12, 10), (25, 25)] {
        assert_eq!(check_in(second).await, None);
        assert_eq!(last_seen().await, Some(at(seen)), "at {second}");
    }
    store.command_worker(worker(1), &command(WorkerCommandKind::Drain, 26)).await.unwrap();
    let received = check_in(27).await;
    assert_eq!(received.map(|command| command.kind), Some(WorkerCommandKind::Drain), "commands do not wait");
    let silent = store.silent(at(99), 9).await.unwrap();
    store.mark_dead(&silent, at(28)).await.unwrap();
    check_in(29).await;
    assert_eq!(last_seen().await, Some(at(29)), "a dead worker is alive at once");
}

pub(crate) async fn what_a_worker_reports_changes_nobody_elses_row(store: Subject) {
    let usage = ResourceUsage { cpu: Some(0.5), memory: None, disk: Some(1.0) };
    store.report_usage(worker(1), &usage).await.unwrap();
    store.count_done(&[(worker(1), 2)]).await.unwrap();
    assert_eq!(store.agenda(at(0)).await.unwrap().worker, None, "nobody is registered by it");
}

fn remote() -> WorkerFacts {
    WorkerFacts {
        function: "remote".into(),
        queue: Some("remote".into()),
        host: "far".into(),
        version: "1".into(),
        since: at(0),
        breakers: Vec::new(),
        remote: Some(RemoteFacts {
            tenant: TENANT,
            name: "w1".into(),
            slots: 4,
            labels: Labels::default(),
            types: None,
            usage: None,
        }),
    }
}

pub(crate) async fn a_worker_receives_its_command_with_its_next_heartbeat_or_when_it_leaves(store: Subject) {
    beat(&*store, 1, 10).await;
    let sent =
        WorkerCommand { reason: Some("it \u{FFFD} hangs".into()), ..command(WorkerCommandKind::Drain, 11) };
    let stands = store.command_worker(worker(1), &command(WorkerCommandKind::Drain, 11)).await.unwrap();
    assert_eq!(stands.as_ref(), Some(&sent));
    assert_eq!(beat(&*store, 1, 12).await.command.as_ref(), Some(&sent));
    assert_eq!(store.farewell(worker(1)).await.unwrap(), Some(sent));
}

pub(crate) async fn of_several_orders_the_first_stands_unless_it_is_to_be_killed(store: Subject) {
    let (drain, kill) = (WorkerCommandKind::Drain, WorkerCommandKind::Kill);
    beat(&*store, 1, 10).await;
    for (given, second, stands) in
        [(drain, 11, 11), (drain, 12, 11), (kill, 13, 13), (drain, 14, 13), (kill, 15, 13)]
    {
        let current = store.command_worker(worker(1), &command(given, second)).await.unwrap().unwrap();
        assert_eq!(current.at, at(stands), "{given:?} at {second}");
    }
}

pub(crate) async fn an_unknown_worker_cannot_be_given_a_command(store: Subject) {
    assert_eq!(store.command_worker(worker(1), &command(WorkerCommandKind::Kill, 1)).await.unwrap(), None);
    assert_eq!(beat(&*store, 1, 2).await.command, None);
}
