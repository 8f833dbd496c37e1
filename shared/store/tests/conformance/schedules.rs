//! Claims about schedules: they follow the active version, and how far they have come is never written over.

use model::{Catchup, Interval, Planned, Schedule, When};
use serde_json::Map;
use store::{Created, NewVersion, Pause, ScheduleRecord};

use crate::Subject;
use crate::example::{TENANT, at, create, definition, new_run, run_id, version};

fn schedule(name: &str, every: u32) -> Schedule {
    Schedule {
        name: name.to_owned(),
        when: When::Every(every),
        timezone: "UTC".to_owned(),
        inputs: Map::new(),
        catchup: Catchup::All,
        cap: None,
        max_active_runs: None,
        overlap: None,
        paused: false,
    }
}

/// A version of `workflow` with these schedules, registered at that second.
fn scheduled(workflow: &str, schedules: Vec<Schedule>, second: i64) -> NewVersion {
    let mut new = definition(workflow, &format!("h{second}"));
    new.workflow.schedules = schedules;
    NewVersion { at: at(second), ..new }
}

async fn all(store: &Subject) -> Vec<ScheduleRecord> {
    store.schedules(TENANT, None, None, 100).await.unwrap()
}

pub(crate) async fn the_schedules_of_an_active_version_are_known(store: Subject) {
    let paused = Schedule { paused: true, ..schedule("b", 60) };
    store.register(&scheduled("w", vec![schedule("a", 60), paused.clone()], 1)).await.unwrap();
    let found = all(&store).await;
    assert_eq!(found[0], ScheduleRecord::new(TENANT, "w", schedule("a", 60), at(1)));
    assert_eq!((&found[1].schedule, found[1].due_at, found[1].rests()), (&paused, None, true));
    assert_eq!(found[0].due_at, Some(at(1)));
    // The same version again changes nothing.
    store.register(&scheduled("w", vec![schedule("a", 60), paused], 1)).await.unwrap();
    assert_eq!(all(&store).await, found);
}

/// A schedule that has come as far as the tenth second, with something owed and a drift.
async fn come_far(store: &Subject) -> ScheduleRecord {
    store.register(&scheduled("w", vec![schedule("a", 60)], 1)).await.unwrap();
    let far = ScheduleRecord {
        decided_until: at(10),
        owed: Some((Catchup::Latest, at(30))),
        due_at: Some(at(50)),
        problem: Some("no run".into()),
        last_date: Some(at(9)),
        drift: vec![3, 1],
        ..all(store).await.remove(0)
    };
    assert!(store.save_schedule(&far).await.unwrap());
    let found = all(store).await.remove(0);
    assert_eq!(found, ScheduleRecord { revision: far.revision + 1, ..far });
    found
}

pub(crate) async fn other_instants_count_from_the_change_on(store: Subject) {
    come_far(&store).await;
    store.register(&scheduled("w", vec![schedule("a", 90)], 20)).await.unwrap();
    let found = all(&store).await.remove(0);
    assert_eq!((found.decided_until, found.due_at, found.owed), (at(20), Some(at(20)), None));
    assert_eq!((found.drift, found.last_date, found.problem), (vec![3, 1], Some(at(9)), None));
}

pub(crate) async fn the_same_instants_stay_undecided_through_a_change(store: Subject) {
    let far = come_far(&store).await;
    let other = Schedule { catchup: Catchup::Latest, ..schedule("a", 60) };
    store.register(&scheduled("w", vec![other.clone()], 20)).await.unwrap();
    let found = all(&store).await.remove(0);
    assert_eq!((found.decided_until, found.owed), (far.decided_until, far.owed));
    assert_eq!((found.due_at, found.schedule), (Some(at(20)), other));
    // A process that read it before can no longer write it.
    assert!(!store.save_schedule(&far).await.unwrap());
}

pub(crate) async fn a_schedule_that_is_gone_is_forgotten(store: Subject) {
    store.register(&scheduled("w", vec![schedule("a", 60), schedule("b", 60)], 1)).await.unwrap();
    store.register(&scheduled("other", vec![schedule("a", 60)], 2)).await.unwrap();
    store.register(&scheduled("w", vec![schedule("b", 60)], 3)).await.unwrap();
    let names = |found: Vec<ScheduleRecord>| {
        found.into_iter().map(|row| (row.workflow, row.schedule.name)).collect::<Vec<_>>()
    };
    let pair = |workflow: &str, name: &str| (workflow.to_owned(), name.to_owned());
    assert_eq!(names(all(&store).await), [pair("other", "a"), pair("w", "b")]);
    store.archive(TENANT, "w", at(4)).await.unwrap();
    assert_eq!(names(all(&store).await), [pair("other", "a")]);
    store.register(&scheduled("w", vec![schedule("b", 60)], 3)).await.unwrap();
    assert_eq!(names(all(&store).await), [pair("other", "a"), pair("w", "b")]);
}

pub(crate) async fn an_older_version_brings_its_schedules_back(store: Subject) {
    store.register(&scheduled("w", vec![schedule("a", 60)], 1)).await.unwrap();
    store.register(&scheduled("w", vec![], 2)).await.unwrap();
    assert_eq!(all(&store).await, []);
    store.activate(TENANT, "w", 1, at(3)).await.unwrap();
    assert_eq!(all(&store).await, [ScheduleRecord::new(TENANT, "w", schedule("a", 60), at(3))]);
}

pub(crate) async fn a_schedule_is_saved_over_the_revision_it_was_read_at(store: Subject) {
    store.register(&scheduled("w", vec![schedule("a", 60)], 1)).await.unwrap();
    let read = all(&store).await.remove(0);
    let (one, other) = (
        ScheduleRecord { decided_until: at(5), ..read.clone() },
        ScheduleRecord { decided_until: at(6), ..read },
    );
    assert!(store.save_schedule(&one).await.unwrap());
    assert!(!store.save_schedule(&other).await.unwrap());
    assert_eq!(all(&store).await[0].decided_until, at(5));
    let unknown = ScheduleRecord { workflow: "nobody".into(), ..one };
    assert!(!store.save_schedule(&unknown).await.unwrap());
}

pub(crate) async fn a_pause_outlasts_a_new_version(store: Subject) {
    store.register(&scheduled("w", vec![schedule("a", 60)], 1)).await.unwrap();
    let pause = Pause { at: at(2), by: "ada".into(), reason: Some("holidays".into()) };
    let read = all(&store).await.remove(0);
    let paused = ScheduleRecord { pause: Some(pause.clone()), due_at: None, ..read };
    assert!(store.save_schedule(&paused).await.unwrap());
    store.register(&scheduled("w", vec![schedule("a", 30)], 3)).await.unwrap();
    let found = all(&store).await.remove(0);
    assert_eq!((found.pause, found.due_at), (Some(pause), None));
    assert_eq!(store.agenda(at(9)).await.unwrap().schedule, None);
}

pub(crate) async fn schedules_come_when_they_are_due_and_by_page(store: Subject) {
    store.register(&scheduled("v", vec![schedule("a", 60)], 7)).await.unwrap();
    store.register(&scheduled("w", vec![schedule("a", 60), schedule("b", 60)], 3)).await.unwrap();
    let mut last = all(&store).await.remove(2);
    last.due_at = Some(at(5));
    assert!(store.save_schedule(&last).await.unwrap());
    let due = |second| store.due_schedules(at(second), 10);
    let names = |found: Vec<ScheduleRecord>| {
        found.into_iter().map(|row| row.workflow + "/" + &row.schedule.name).collect::<Vec<_>>()
    };
    assert_eq!(names(due(2).await.unwrap()), [""; 0]);
    assert_eq!(names(due(6).await.unwrap()), ["w/a", "w/b"]);
    assert_eq!(names(due(7).await.unwrap()), ["w/a", "w/b", "v/a"]);
    assert_eq!(names(store.due_schedules(at(7), 1).await.unwrap()), ["w/a"]);
    let agenda = store.agenda(at(4)).await.unwrap();
    assert_eq!((agenda.schedule, agenda.next_timer), (Some(at(3)), Some(at(5))));
    assert_eq!(names(store.schedules(TENANT, None, Some(("v", "a")), 1).await.unwrap()), ["w/a"]);
    assert_eq!(names(store.schedules(TENANT, Some("w"), Some(("w", "a")), 9).await.unwrap()), ["w/b"]);
    assert_eq!(store.schedules(model::TenantId(99), None, None, 9).await.unwrap(), []);
}

pub(crate) async fn each_schedule_has_its_own_dates(store: Subject) {
    let version = version(&*store).await;
    let interval = Interval { start: at(-60), end: at(0) };
    let try_create = async |number: u128, schedule: Option<&str>| {
        let mut new_run = new_run(run_id(number), version, 1);
        new_run.facts.logical_date = Some(at(0));
        new_run.facts.planned = schedule.map(|name| Planned { schedule: name.to_owned(), interval });
        create(&*store, &new_run).await.unwrap()
    };
    assert_eq!(try_create(1, Some(Schedule::ONLY)).await, Created::New);
    // People and a workflow's only schedule share their dates.
    assert_eq!(try_create(2, None).await, Created::DateTaken(run_id(1)));
    assert_eq!(try_create(3, Some("eu")).await, Created::New);
    assert_eq!(try_create(4, Some("eu")).await, Created::DateTaken(run_id(3)));
    let found = store.run(TENANT, run_id(3)).await.unwrap().unwrap().facts.planned;
    assert_eq!(found, Some(Planned { schedule: "eu".into(), interval }));
}
