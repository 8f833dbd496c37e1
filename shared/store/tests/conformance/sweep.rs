//! Claims about what the sweep asks for: timers, rechecks, unsent messages.

use model::change::Recheck;
use model::run::Counts;
use model::{Instant, RunId, TaskIndex, TaskState, Timer, TimerKind};
use store::{Agenda, DueTimer, Error};

use crate::Subject;
use crate::example::{at, event, example, finish, nudge, record, run, step};
use crate::workers::beat;

fn timer(task: u32, attempt: u32, second: i64) -> Timer {
    Timer { task: Some(TaskIndex(task)), attempt, kind: TimerKind::Retry, wake_at: at(second) }
}

async fn set(store: &Subject, run: RunId, timers: Vec<Timer>) {
    step(&**store, run, |changes| changes.timers = timers).await.unwrap();
}

async fn recheck(store: &Subject, run: RunId, recheck: Recheck) {
    step(&**store, run, |changes| changes.recheck = recheck).await.unwrap();
}

async fn post(store: &Subject, run: RunId, second: i64) -> i64 {
    let unsent = step(&**store, run, |changes| {
        record(changes, &[event(second)]);
        changes.outbox.push(nudge(changes.run.id));
    });
    unsent.await.unwrap().unwrap().id
}

async fn unsent(store: &Subject, second: i64) -> Vec<i64> {
    store.unsent(at(second), 9).await.unwrap().into_iter().map(|unsent| unsent.id).collect()
}

pub(crate) async fn an_empty_store_has_nothing_on_its_agenda(store: Subject) {
    store.ping().await.unwrap();
    let retention = Some(Instant::UNIX_EPOCH);
    assert_eq!(store.agenda(at(0)).await.unwrap(), Agenda { retention, ..Agenda::default() });
}

pub(crate) async fn the_agenda_says_when_the_first_of_each_is_due(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    set(&store, one, vec![timer(0, 1, 50), timer(1, 1, 20)]).await;
    recheck(&store, one, Recheck::At(at(60))).await;
    recheck(&store, two, Recheck::At(at(70))).await;
    post(&store, one, 5).await;
    post(&store, one, 6).await;
    beat(&*store, 1, 40).await;
    beat(&*store, 2, 30).await;
    let agenda = Agenda {
        granted: None,
        breaker: None,
        room: false,
        schedule: None,
        backfill: None,
        timer: Some(at(20)),
        next_timer: Some(at(50)),
        recheck: Some(at(60)),
        unsent: Some(at(5)),
        worker: Some(at(30)),
        retention: Some(Instant::UNIX_EPOCH),
        trigger: None,
        neglected: false,
        log_filter: None,
    };
    assert_eq!(store.agenda(at(20)).await.unwrap(), agenda);
}

pub(crate) async fn a_run_without_a_recheck_is_neglected_unless_it_only_waits(store: Subject) {
    let id = example(&*store, 1).await;
    let neglected = async || store.agenda(at(0)).await.unwrap().neglected;
    for (states, recheck, expected) in [
        (&[TaskState::Pending][..], Recheck::At(at(60)), false),
        (&[], Recheck::Never, true),
        (&[TaskState::Sleeping], Recheck::Never, false),
        (&[TaskState::UpForRetry], Recheck::Never, false),
        (&[TaskState::Sleeping, TaskState::Queued], Recheck::Never, true),
        (&[TaskState::UpForRetry, TaskState::Dispatched], Recheck::Never, true),
        (&[TaskState::Sleeping, TaskState::Running], Recheck::Never, true),
    ] {
        step(&*store, id, |changes| {
            let tasks = changes.run.counts.total();
            changes.run.counts = Counts::all_pending(tasks);
            states.iter().for_each(|state| changes.run.counts.moved(TaskState::Pending, *state));
            changes.recheck = recheck;
        })
        .await
        .unwrap();
        assert_eq!(neglected().await, expected, "{states:?}, {recheck:?}");
    }
    finish(&*store, id).await;
    assert!(!neglected().await, "what has ended needs nobody");
}

pub(crate) async fn what_is_due_for_a_run_can_be_put_off(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    for id in [one, two] {
        set(&store, id, vec![timer(0, 1, 20), timer(1, 1, 90)]).await;
        recheck(&store, id, Recheck::At(at(20))).await;
    }
    store.postpone(one, at(30), at(80)).await.unwrap();
    let due = |second| store.due_timers(at(second), 9);
    assert_eq!(due(30).await.unwrap().iter().map(|due| due.run).collect::<Vec<_>>(), [two]);
    assert_eq!(due(80).await.unwrap().len(), 2);
    assert_eq!(store.due_rechecks(at(30), 9).await.unwrap(), [two]);
    assert_eq!(store.due_rechecks(at(80), 9).await.unwrap(), [two, one]);
}

pub(crate) async fn a_timer_is_due_at_its_instant_and_not_before(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    set(&store, one, vec![timer(0, 1, 20), timer(1, 1, 30)]).await;
    set(&store, two, vec![timer(2, 1, 10)]).await;
    let due = |run, timer| DueTimer { run, timer };
    let all = [due(two, timer(2, 1, 10)), due(one, timer(0, 1, 20)), due(one, timer(1, 1, 30))];
    assert_eq!(store.due_timers(at(9), 9).await.unwrap(), []);
    assert_eq!(store.due_timers(at(20), 9).await.unwrap(), all[..2]);
    assert_eq!(store.due_timers(at(99), 1).await.unwrap(), all[..1]);
    assert_eq!(store.due_timers(at(99), 9).await.unwrap(), all);
}

pub(crate) async fn a_task_has_one_timer_of_a_kind(store: Subject) {
    let id = example(&*store, 1).await;
    set(&store, id, vec![timer(0, 1, 10)]).await;
    set(&store, id, vec![timer(0, 2, 20)]).await;
    assert_eq!(store.due_timers(at(99), 9).await.unwrap(), [DueTimer { run: id, timer: timer(0, 2, 20) }]);
    step(&*store, id, |changes| changes.unset_timers = vec![Some(TaskIndex(0)), Some(TaskIndex(1))])
        .await
        .unwrap();
    assert_eq!(store.due_timers(at(99), 9).await.unwrap(), []);
}

pub(crate) async fn a_timer_that_is_dropped_and_set_at_once_is_set(store: Subject) {
    let id = example(&*store, 1).await;
    set(&store, id, vec![timer(0, 1, 10)]).await;
    step(&*store, id, |changes| {
        changes.unset_timers = vec![Some(TaskIndex(0))];
        changes.timers = vec![timer(0, 2, 20)];
    })
    .await
    .unwrap();
    assert_eq!(store.due_timers(at(99), 9).await.unwrap(), [DueTimer { run: id, timer: timer(0, 2, 20) }]);
}

fn own_timer(kind: TimerKind, second: i64) -> Timer {
    Timer { task: None, attempt: 0, kind, wake_at: at(second) }
}

pub(crate) async fn a_run_has_timers_of_its_own(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    let (timeout, deadline) = (own_timer(TimerKind::Timeout, 20), own_timer(TimerKind::Deadline, 20));
    set(&store, one, vec![timer(0, 1, 20), timeout.clone(), deadline.clone()]).await;
    set(&store, two, vec![own_timer(TimerKind::Timeout, 10)]).await;
    set(&store, two, vec![own_timer(TimerKind::Timeout, 15)]).await;
    let due = |run, timer| DueTimer { run, timer };
    let all = [
        due(two, own_timer(TimerKind::Timeout, 15)),
        due(one, deadline),
        due(one, timeout),
        due(one, timer(0, 1, 20)),
    ];
    assert_eq!(store.due_timers(at(99), 9).await.unwrap(), all);
    assert_eq!(store.due_timers(at(99), 2).await.unwrap(), all[..2]);
}

pub(crate) async fn timers_are_dropped_by_whose_they_are(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    let timeout = Timer { kind: TimerKind::Timeout, ..timer(0, 1, 10) };
    let (own, deadline) = (own_timer(TimerKind::Timeout, 10), own_timer(TimerKind::Deadline, 10));
    for id in [one, two] {
        let timers = vec![timer(0, 1, 10), timeout.clone(), timer(1, 1, 10), own.clone(), deadline.clone()];
        set(&store, id, timers).await;
    }
    let due = async |id| {
        let due = store.due_timers(at(99), 99).await.unwrap().into_iter().filter(|due| due.run == id);
        due.map(|due| due.timer).collect::<Vec<_>>()
    };
    step(&*store, one, |changes| changes.unset_timers = vec![Some(TaskIndex(0))]).await.unwrap();
    assert_eq!(due(one).await, [deadline, own, timer(1, 1, 10)]);
    step(&*store, one, |changes| changes.unset_timers = vec![None]).await.unwrap();
    assert_eq!(due(one).await, [timer(1, 1, 10)]);
    assert_eq!(due(two).await.len(), 5);
}

pub(crate) async fn a_timer_without_an_owner_that_can_have_it_is_refused(store: Subject) {
    let id = example(&*store, 1).await;
    let wrong = [
        timer(3, 1, 10),
        own_timer(TimerKind::Retry, 10),
        own_timer(TimerKind::Sleep, 10),
        Timer { attempt: 1, ..own_timer(TimerKind::Timeout, 10) },
        Timer { kind: TimerKind::Deadline, ..timer(0, 1, 10) },
    ];
    for timer in wrong {
        let refused = step(&*store, id, |changes| changes.timers = vec![timer]).await;
        assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
    }
}

pub(crate) async fn steps_leave_the_recheck_as_it_was(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    recheck(&store, one, Recheck::At(at(20))).await;
    recheck(&store, two, Recheck::At(at(10))).await;
    recheck(&store, one, Recheck::Keep).await;
    assert_eq!(store.due_rechecks(at(9), 9).await.unwrap(), []);
    assert_eq!(store.due_rechecks(at(20), 9).await.unwrap(), [two, one]);
    assert_eq!(store.due_rechecks(at(20), 1).await.unwrap(), [two]);
    recheck(&store, two, Recheck::Never).await;
    assert_eq!(store.due_rechecks(at(20), 9).await.unwrap(), [one]);
}

pub(crate) async fn a_finished_run_is_not_looked_at(store: Subject) {
    let id = example(&*store, 1).await;
    recheck(&store, id, Recheck::At(at(10))).await;
    finish(&*store, id).await;
    assert_eq!(store.due_rechecks(at(99), 9).await.unwrap(), []);
    assert_eq!(store.check_all(at(50)).await.unwrap(), 0);
}

pub(crate) async fn every_unfinished_run_can_be_looked_at_at_once(store: Subject) {
    let mut ids = Vec::new();
    for number in 1..=4 {
        ids.push(example(&*store, number).await);
    }
    finish(&*store, ids[0]).await;
    recheck(&store, ids[1], Recheck::At(at(10))).await;
    recheck(&store, ids[2], Recheck::At(at(90))).await;
    assert_eq!(store.check_all(at(50)).await.unwrap(), 3);
    assert_eq!(store.due_rechecks(at(50), 9).await.unwrap(), ids[1..]);
    assert_eq!(run(&*store, ids[3]).await.revision, 0);
}

pub(crate) async fn committed_messages_are_unsent_until_they_are_marked(store: Subject) {
    let id = example(&*store, 1).await;
    let (first, second) = (post(&store, id, 1).await, post(&store, id, 2).await);
    let all = store.unsent(at(9), 9).await.unwrap();
    assert_eq!(
        all.iter().map(|unsent| (unsent.id, &*unsent.messages)).collect::<Vec<_>>(),
        [(first, &[nudge(id)][..]), (second, &[nudge(id)])]
    );
    assert_eq!(store.unsent(at(9), 1).await.unwrap(), all[..1]);
    store.sent(&[first]).await.unwrap();
    assert_eq!(unsent(&store, 9).await, [second]);
    assert_eq!(store.agenda(at(0)).await.unwrap().unsent, Some(at(2)));
}

pub(crate) async fn marking_messages_as_sent_twice_changes_nothing(store: Subject) {
    let id = example(&*store, 1).await;
    let (first, second) = (post(&store, id, 1).await, post(&store, id, 2).await);
    store.sent(&[first]).await.unwrap();
    store.sent(&[first, 4711]).await.unwrap();
    store.sent(&[]).await.unwrap();
    assert_eq!(unsent(&store, 9).await, [second]);
}

pub(crate) async fn young_messages_are_left_to_the_process_that_wrote_them(store: Subject) {
    let id = example(&*store, 1).await;
    let (first, second) = (post(&store, id, 10).await, post(&store, id, 20).await);
    assert_eq!(unsent(&store, 9).await, [0; 0]);
    assert_eq!(unsent(&store, 10).await, [first]);
    assert_eq!(unsent(&store, 20).await, [first, second]);
}

pub(crate) async fn a_recheck_can_be_brought_forward_but_not_postponed(store: Subject) {
    let id = example(&*store, 1).await;
    recheck(&store, id, Recheck::At(at(60))).await;
    for (by, expected) in [(70, 60), (50, 50), (60, 50)] {
        recheck(&store, id, Recheck::By(at(by))).await;
        assert_eq!(store.agenda(at(0)).await.unwrap().recheck, Some(at(expected)));
    }
}

pub(crate) async fn a_unit_takes_what_is_due_and_no_more(store: Subject) {
    let (one, two) = (example(&*store, 1).await, example(&*store, 2).await);
    set(&store, one, vec![timer(0, 1, 20), timer(1, 1, 30)]).await;
    set(&store, two, vec![timer(0, 1, 25)]).await;
    let taken = async |second, limit| {
        let mut unit = store.begin().await.unwrap();
        let due = unit.due_timers(at(second), limit).await.unwrap();
        unit.commit().await.unwrap();
        due.into_iter().map(|due| (due.run, due.timer)).collect::<Vec<_>>()
    };
    let all = [(one, timer(0, 1, 20)), (two, timer(0, 1, 25)), (one, timer(1, 1, 30))];
    assert_eq!(taken(19, 9).await, []);
    assert_eq!(taken(20, 9).await, all[..1]);
    assert_eq!(taken(99, 2).await, all[..2]);
    assert_eq!(taken(99, 9).await, all);
}
