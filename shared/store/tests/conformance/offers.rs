//! Claims about offers: dispatched tasks of remote queues.

use model::{
    Candidate, Demand, Label, Labels, NewOffer, Offer, OfferGroup, RunId, TaskIndex, TaskState, TenantId,
};
use store::{OfferedTask, Part, Store};

use crate::Subject;
use crate::example::{TENANT, at, create, example, finish, key, new_run, run_id, step, version};

const QUEUE: &str = "remote";

fn gpu() -> Labels {
    Labels([("gpu".to_owned(), Label::Flag(true))].into())
}

fn offer(task: u32, rank: i64) -> Offer {
    Offer {
        task: TaskIndex(task),
        attempt: 1,
        queue: QUEUE.into(),
        kind: "bash".into(),
        requires: Labels::default(),
        backfill: None,
        rank,
    }
}

/// Dispatches and offers tasks of a run.
async fn make(store: &dyn Store, run: RunId, offers: Vec<Offer>) {
    step(store, run, |changes| {
        for offer in &offers {
            let task = &mut changes.tasks[offer.task.0 as usize];
            (task.state, task.attempt) = (TaskState::Dispatched, offer.attempt);
        }
        changes.offers = offers;
    })
    .await
    .unwrap();
}

async fn groups(store: &dyn Store) -> Vec<OfferGroup> {
    store.offer_groups(TENANT, QUEUE).await.unwrap()
}

/// What is offered to a worker that can do everything, in order.
async fn offered(store: &dyn Store, second: i64) -> Vec<Candidate> {
    let groups = groups(store).await;
    let mut found = store.first_offers(TENANT, QUEUE, &groups, 100, at(second)).await.unwrap();
    found.sort_by_key(|candidate| (candidate.rank, candidate.key));
    found
}

async fn tasks(store: &dyn Store, second: i64) -> Vec<u32> {
    offered(store, second).await.into_iter().map(|candidate| candidate.key.task.0).collect()
}

pub(crate) async fn an_offer_is_there_while_its_task_is_dispatched(store: Subject) {
    let id = example(&*store, 1).await;
    assert_eq!(groups(&*store).await, []);
    make(&*store, id, vec![offer(0, 5), offer(1, 7)]).await;
    assert_eq!(tasks(&*store, 1).await, [0, 1]);
    step(&*store, id, |changes| changes.withdrawn_offers = vec![TaskIndex(0)]).await.unwrap();
    assert_eq!(tasks(&*store, 1).await, [1]);
    step(&*store, id, |changes| changes.withdrawn_offers = vec![TaskIndex(0), TaskIndex(1)]).await.unwrap();
    assert_eq!(groups(&*store).await, []);
}

pub(crate) async fn a_new_run_brings_its_offers(store: Subject) {
    let mut new_run = new_run(run_id(1), version(&*store).await, 2);
    new_run.changes.offers = vec![offer(1, 3)];
    create(&*store, &new_run).await.unwrap();
    create(&*store, &new_run).await.unwrap();
    assert_eq!(tasks(&*store, 1).await, [1]);
}

pub(crate) async fn a_later_attempt_replaces_the_offer_of_an_earlier_one(store: Subject) {
    let id = example(&*store, 1).await;
    make(&*store, id, vec![offer(0, 5)]).await;
    let first = offered(&*store, 1).await;
    assert_eq!(store.reserve_offers(&first, 1, at(1), at(9)).await.unwrap().len(), 1);
    make(&*store, id, vec![Offer { attempt: 2, rank: 6, requires: gpu(), ..offer(0, 0) }]).await;
    let second = offered(&*store, 1).await;
    assert_eq!(second.iter().map(|found| (found.attempt, found.rank)).collect::<Vec<_>>(), [(2, 6)]);
    assert_eq!(
        store.reserve_offers(&first, 1, at(10), at(19)).await.unwrap(),
        [],
        "it is of an earlier attempt"
    );
}

pub(crate) async fn offers_of_other_tenants_and_queues_are_not_found(store: Subject) {
    let id = example(&*store, 1).await;
    make(&*store, id, vec![offer(0, 5), Offer { queue: "remote-gpu".into(), ..offer(1, 5) }]).await;
    let other: TenantId = store.tenant("other", at(0)).await.unwrap();
    assert_eq!(store.offer_groups(other, QUEUE).await.unwrap(), []);
    let groups = groups(&*store).await;
    assert_eq!(store.first_offers(other, QUEUE, &groups, 9, at(1)).await.unwrap(), []);
    assert_eq!(tasks(&*store, 1).await, [0]);
}

pub(crate) async fn each_group_is_listed_once_and_gives_its_first_offers(store: Subject) {
    for run in 1..=4 {
        let id = example(&*store, run).await;
        let rank = 10 - run as i64;
        let on_gpu = Offer { requires: gpu(), ..offer(1, rank) };
        let http = Offer { kind: "http".into(), ..offer(2, rank) };
        make(&*store, id, vec![offer(0, rank), on_gpu, http]).await;
    }
    let group = |kind: &str, requires| OfferGroup {
        demand: Demand { workflow: "example".into(), kind: kind.into(), requires },
        backfill: None,
        weight: None,
    };
    let all = groups(&*store).await;
    assert_eq!(all.len(), 3);
    for expected in [group("bash", gpu()), group("bash", Labels::default()), group("http", Labels::default())]
    {
        assert!(all.contains(&expected), "{expected:?} in {all:?}");
    }
    let wanted = [group("bash", gpu()), group("http", Labels::default())];
    let found = store.first_offers(TENANT, QUEUE, &wanted, 2, at(1)).await.unwrap();
    let mut keys: Vec<_> = found.iter().map(|candidate| candidate.key).collect();
    keys.sort();
    let expected = [(3, 1), (3, 2), (4, 1), (4, 2)].map(|(run, task)| key(run_id(run), task));
    assert_eq!(keys, expected, "the two of lowest rank of each");
}

pub(crate) async fn an_offer_is_reserved_once_until_the_reservation_ends(store: Subject) {
    let id = example(&*store, 1).await;
    make(&*store, id, vec![offer(0, 5), offer(1, 6), offer(2, 7)]).await;
    let all = offered(&*store, 1).await;
    let reserve = async |second| store.reserve_offers(&all, 2, at(second), at(second + 10)).await.unwrap();
    let version = crate::example::run(&*store, id).await.version;
    let task = |task| OfferedTask {
        key: key(id, task),
        attempt: 1,
        workflow: "example".into(),
        version,
        child: None,
    };
    assert_eq!(reserve(1).await, [task(0), task(1)], "the first ones, in the order given");
    assert_eq!(tasks(&*store, 2).await, [2]);
    assert_eq!(reserve(2).await, [task(2)]);
    assert_eq!(reserve(3).await, []);
    assert_eq!(tasks(&*store, 11).await, [0, 1], "a process that died gives them back");
    assert_eq!(reserve(11).await, [task(0), task(1)]);
}

pub(crate) async fn a_reservation_can_end_early(store: Subject) {
    let id = example(&*store, 1).await;
    make(&*store, id, vec![offer(0, 5), offer(1, 6), offer(2, 7)]).await;
    let all = offered(&*store, 1).await;
    assert_eq!(store.reserve_offers(&all, 3, at(1), at(10)).await.unwrap().len(), 3);
    store.unreserve_offers(&[(key(id, 0), 1), (key(id, 1), 2), (key(id, 9), 1)]).await.unwrap();
    assert_eq!(tasks(&*store, 2).await, [0], "not of another attempt, and not of one without an offer");
    store.unreserve_offers(&[]).await.unwrap();
    assert_eq!(store.reserve_offers(&all, 3, at(2), at(10)).await.unwrap().len(), 1);
}

pub(crate) async fn of_many_that_reserve_at_once_each_gets_other_offers(store: Subject) {
    let mut expected = Vec::new();
    for run in 1..=10 {
        let id = example(&*store, run).await;
        make(&*store, id, vec![offer(0, 5), offer(1, 6)]).await;
        expected.extend([key(id, 0), key(id, 1)]);
    }
    let take_some = async || {
        let mut taken = Vec::new();
        // Everybody goes on until nothing is left: of those that come first, all may be locked for a moment.
        loop {
            let candidates = offered(&*store, 1).await;
            if candidates.is_empty() {
                return taken;
            }
            let reserved = store.reserve_offers(&candidates, 3, at(1), at(99)).await.unwrap();
            taken.extend(reserved.into_iter().map(|task| task.key));
        }
    };
    let (a, b, c, d) = tokio::join!(take_some(), take_some(), take_some(), take_some());
    let mut all: Vec<_> = [a, b, c, d].concat();
    all.sort();
    assert_eq!(all, expected);
}

pub(crate) async fn new_offers_are_received_once_they_are_committed(store: Subject) {
    let mut feed = store.listen_for_offers().await.unwrap();
    let id = example(&*store, 1).await;
    let mut unit = store.begin().await.unwrap();
    let run = unit.lock(&[id]).await.unwrap().remove(0);
    let mut changes = crate::example::changes(run);
    changes.offers = vec![offer(0, 5)];
    unit.save(&[changes]).await.unwrap();
    drop(unit);
    make(&*store, id, vec![Offer { requires: gpu(), ..offer(1, 5) }]).await;
    let demand = Demand { workflow: "example".into(), kind: "bash".into(), requires: gpu() };
    let expected = NewOffer { tenant: TENANT, queue: QUEUE.into(), demand };
    assert_eq!(feed.next().await.unwrap(), Some(expected), "what was not committed was not offered");
}

pub(crate) async fn offers_are_forgotten_with_their_run(store: Subject) {
    let id = example(&*store, 1).await;
    make(&*store, id, vec![offer(0, 5)]).await;
    finish(&*store, id).await;
    store.forget(Part::Whole, &[id]).await.unwrap();
    assert_eq!(groups(&*store).await, []);
}
