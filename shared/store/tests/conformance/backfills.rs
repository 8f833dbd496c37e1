//! Claims about backfills: each date is begun by one, and all that is counted is counted at one moment.

use std::collections::BTreeMap;

use model::{BackfillId, Interval, Planned, RunId, RunState, VersionId};
use store::{BackfillDate, BackfillRecord, BackfillState, BackfillTurn, DateStep, Rerun};
use uuid::Uuid;

use crate::Subject;
use crate::example::{TENANT, at, create, finish, new_run, run_id, version};

pub(crate) fn record(number: u128) -> BackfillRecord {
    BackfillRecord {
        id: BackfillId(Uuid::from_u128(number)),
        tenant: TENANT,
        workflow: "example".into(),
        schedule: "default".into(),
        version: Some(1),
        from: at(0),
        to: at(100),
        max_parallel: 2,
        weight: 3,
        rerun: Rerun::Failed,
        state: BackfillState::Running,
        created_at: at(i64::try_from(number).unwrap()),
        created_by: "ada".into(),
        finished_at: None,
        cancelled_by: None,
        due_at: Some(at(60)),
        problem: None,
        revision: 0,
    }
}

fn date(second: i64) -> BackfillDate {
    let (date, interval_start) = (at(second), at(second - 10));
    BackfillDate { date, interval_start, step: DateStep::Waiting, run: None, redo: false }
}

pub(crate) async fn made(store: &Subject, number: u128) -> BackfillRecord {
    version(&**store).await;
    let record = record(number);
    store.create_backfill(&record, &[date(10), date(20), date(30)]).await.unwrap();
    record
}

/// A run of the example with that date.
async fn run_at(store: &Subject, number: u128, version: VersionId, second: i64, schedule: &str) -> RunId {
    let mut new_run = new_run(run_id(number), version, 3);
    new_run.facts.logical_date = Some(at(second));
    let interval = Interval { start: at(second), end: at(second) };
    new_run.facts.planned = Some(Planned { schedule: schedule.to_owned(), interval });
    create(&**store, &new_run).await.unwrap();
    run_id(number)
}

pub(crate) async fn a_backfill_is_created_once_with_its_dates(store: Subject) {
    let first = made(&store, 1).await;
    assert_eq!(store.any_backfill(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.any_backfill(first.id).await.unwrap(), Some(first.clone()));
    let again = BackfillRecord { max_parallel: 9, ..first.clone() };
    store.create_backfill(&again, &[date(99)]).await.unwrap();
    assert_eq!(store.any_backfill(first.id).await.unwrap(), Some(first.clone()));
    let waiting = vec![date(10), date(20), date(30)];
    let turn = store.backfill_turn(first.id, 10).await.unwrap();
    assert_eq!(turn, BackfillTurn { waiting, ..BackfillTurn::default() });
    assert_eq!(store.backfill_turn(first.id, 2).await.unwrap().waiting.len(), 2);
}

pub(crate) async fn a_backfill_is_saved_over_the_revision_it_was_read_at(store: Subject) {
    let read = made(&store, 1).await;
    let paused = BackfillRecord {
        state: BackfillState::Paused,
        due_at: None,
        problem: Some("no run".into()),
        ..read.clone()
    };
    assert!(store.save_backfill(&paused).await.unwrap());
    assert!(!store.save_backfill(&BackfillRecord { problem: None, ..read.clone() }).await.unwrap());
    let found = store.any_backfill(read.id).await.unwrap().unwrap();
    assert_eq!(found, BackfillRecord { revision: 1, ..paused });
    let ended = BackfillRecord { state: BackfillState::Finished, finished_at: Some(at(70)), ..found };
    assert!(store.save_backfill(&ended).await.unwrap());
    assert_eq!(store.any_backfill(read.id).await.unwrap().unwrap().finished_at, Some(at(70)));
}

pub(crate) async fn a_date_moves_on_once(store: Subject) {
    let id = made(&store, 1).await.id;
    let claimed = BackfillDate { step: DateStep::Claimed, run: Some(run_id(7)), ..date(10) };
    assert!(store.move_date(id, DateStep::Waiting, &claimed).await.unwrap());
    assert!(!store.move_date(id, DateStep::Waiting, &claimed).await.unwrap());
    let turn = store.backfill_turn(id, 10).await.unwrap();
    assert_eq!((turn.active, turn.claimed, turn.waiting), (1, vec![claimed], vec![date(20), date(30)]));
    assert_eq!(store.backfill_runs(id, &RunState::ALL, 10).await.unwrap(), [], "no run of it is there yet");
    let begun = BackfillDate { step: DateStep::Begun, ..claimed };
    assert!(store.move_date(id, DateStep::Claimed, &begun).await.unwrap());
    assert!(!store.move_date(id, DateStep::Waiting, &BackfillDate { ..date(99) }).await.unwrap());
}

pub(crate) async fn a_turn_counts_what_is_under_way(store: Subject) {
    let (id, version) = (made(&store, 1).await.id, version(&*store).await);
    for (number, second, redo) in [(1, 10, false), (2, 20, true)] {
        let run = Some(run_at(&store, number, version, second, "default").await);
        let begun = BackfillDate { step: DateStep::Begun, run, redo, ..date(second) };
        assert!(store.move_date(id, DateStep::Waiting, &begun).await.unwrap());
    }
    let turn = store.backfill_turn(id, 10).await.unwrap();
    assert_eq!((turn.active, turn.redoing, turn.waiting), (2, true, vec![date(30)]));
    assert_eq!(store.backfill_runs(id, &[RunState::Queued], 10).await.unwrap().len(), 2);
    finish(&*store, run_id(2)).await;
    let turn = store.backfill_turn(id, 10).await.unwrap();
    assert_eq!((turn.active, turn.redoing), (1, false));
    assert_eq!(store.backfill_runs(id, &RunState::ALL, 10).await.unwrap().len(), 2);
    let cancelled = store.backfill_runs(id, &[RunState::Cancelled], 10).await.unwrap();
    assert_eq!(
        cancelled.iter().map(|(date, state)| (date.date, *state)).collect::<Vec<_>>(),
        [(at(20), RunState::Cancelled)]
    );
}

pub(crate) async fn runs_are_found_by_their_dates(store: Subject) {
    let version = version(&*store).await;
    for (number, second, schedule) in
        [(1, 10, "default"), (2, 20, "default"), (3, 20, "eu"), (4, 30, "default")]
    {
        run_at(&store, number, version, second, schedule).await;
    }
    finish(&*store, run_id(1)).await;
    let found = |schedule: &'static str| store.runs_of_dates(TENANT, "example", schedule, at(10), at(20));
    let cancelled = (at(10), (run_id(1), RunState::Cancelled));
    assert_eq!(
        found("default").await.unwrap(),
        BTreeMap::from([cancelled, (at(20), (run_id(2), RunState::Queued))])
    );
    assert_eq!(found("eu").await.unwrap(), BTreeMap::from([(at(20), (run_id(3), RunState::Queued))]));
}

pub(crate) async fn backfills_come_when_they_are_due_and_by_page(store: Subject) {
    let (first, second) = (made(&store, 1).await, made(&store, 2).await);
    let ids = |found: Vec<BackfillRecord>| found.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(store.backfills(TENANT, None, None, 9).await.unwrap()), [second.id, first.id]);
    let after = Some((second.created_at, second.id));
    assert_eq!(ids(store.backfills(TENANT, Some("example"), after, 9).await.unwrap()), [first.id]);
    assert_eq!(ids(store.backfills(TENANT, Some("other"), None, 9).await.unwrap()), []);
    assert_eq!(ids(store.due_backfills(at(59), 9).await.unwrap()), []);
    assert_eq!(ids(store.due_backfills(at(60), 9).await.unwrap()), [first.id, second.id]);
    let agenda = store.agenda(at(5)).await.unwrap();
    assert_eq!((agenda.backfill, agenda.next_timer), (Some(at(60)), Some(at(60))));
}

pub(crate) async fn a_cancelled_backfill_may_be_looked_at(store: Subject) {
    let (id, version) = (made(&store, 1).await.id, version(&*store).await);
    let read = store.any_backfill(id).await.unwrap().unwrap();
    let (state, by) = (BackfillState::Cancelled, Some("eve".to_owned()));
    let cancelled = BackfillRecord { state, finished_at: Some(at(50)), cancelled_by: by, ..read };
    assert!(store.save_backfill(&cancelled).await.unwrap());
    let due = store.due_backfills(at(60), 9).await.unwrap();
    assert_eq!(due, [BackfillRecord { revision: 1, ..cancelled }]);
    // The process that claimed its date died: its run exists all the same, and must be found.
    let run = Some(run_at(&store, 7, version, 10, "default").await);
    let claimed = BackfillDate { step: DateStep::Claimed, run, ..date(10) };
    assert!(store.move_date(id, DateStep::Waiting, &claimed).await.unwrap());
    let found = store.backfill_runs(id, &[RunState::Queued], 9).await.unwrap();
    assert_eq!(found, [(claimed, RunState::Queued)]);
}

pub(crate) async fn backfills_that_ended_long_ago_are_forgotten(store: Subject) {
    for (number, state, finished_at, due_at) in [
        (1, BackfillState::Finished, Some(at(100)), None),
        (2, BackfillState::Cancelled, Some(at(200)), None),
        (3, BackfillState::Cancelled, Some(at(100)), Some(at(300))),
        (4, BackfillState::Paused, None, None),
    ] {
        let read = made(&store, number).await;
        assert!(store.save_backfill(&BackfillRecord { state, finished_at, due_at, ..read }).await.unwrap());
    }
    assert_eq!(store.forget_backfills(at(99)).await.unwrap(), 0);
    assert_eq!(store.forget_backfills(at(150)).await.unwrap(), 1);
    assert_eq!(store.any_backfill(record(1).id).await.unwrap(), None);
    assert_eq!(store.backfill_turn(record(1).id, 9).await.unwrap(), BackfillTurn::default());
    assert_eq!(store.forget_backfills(at(250)).await.unwrap(), 1);
    let left = store.backfills(TENANT, None, None, 9).await.unwrap();
    assert_eq!(
        left.iter().map(|row| row.id).collect::<Vec<_>>(),
        [record(4).id, record(3).id],
        "one that must be looked at stays, and so does one that has not ended"
    );
    assert_eq!(store.backfill_turn(record(4).id, 9).await.unwrap().waiting.len(), 3);
}
