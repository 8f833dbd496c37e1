//! Fairness in numbers, on Postgres at full size, where a wait queue is only ever read from its head.

use model::{SlotRequest, TenantId};

use crate::Subject;
use crate::admission::admit;
use crate::example::{TENANT, at};
use crate::slots::{behind_one, crowd, drain, leave};

/// The number of tasks that request slots in one transaction.
const TOGETHER: usize = 5_000;

/// The tenants that were granted a slot, in order and `most` of them; at first all crowds wait, one behind the other.
async fn arrivals(store: &Subject, crowds: Vec<Vec<SlotRequest>>, most: usize) -> Vec<TenantId> {
    let portions: Vec<Vec<SlotRequest>> =
        crowds.iter().flat_map(|crowd| crowd.chunks(TOGETHER).map(<[SlotRequest]>::to_vec)).collect();
    let (first, asks) = behind_one(&**store, &portions).await;
    drain(&**store, &asks, &first, most).await.into_iter().map(|ask| ask.tenant).collect()
}

#[tokio::test]
async fn one_task_behind_ten_thousand_comes_within_a_round() {
    let database = testkit::migrated(store::Postgres::migrate).await;
    let store = crate::postgres(&database.url).await;
    let other = store.tenant("other", at(0)).await.unwrap();
    let order = arrivals(&store, vec![crowd(TENANT, 1_000, 10_000), crowd(other, 1, 1)], 4).await;
    let place = order.iter().position(|tenant| *tenant == other);
    assert!(place.is_some_and(|place| place <= 1), "it came as number {place:?}");
}

/// The tasks that leave are the first of their tenant, and then those in the middle of its part of the wait queue.
#[tokio::test]
async fn ten_thousand_tasks_that_are_cancelled_cost_their_tenant_no_turn() {
    let database = testkit::migrated(store::Postgres::migrate).await;
    let store = crate::postgres(&database.url).await;
    let other = store.tenant("other", at(0)).await.unwrap();
    let (many, patient) = (crowd(TENANT, 1_000, 10_000), crowd(other, 100_000, 5_000));
    let portions: Vec<Vec<SlotRequest>> = [&many, &patient]
        .into_iter()
        .flat_map(|crowd| crowd.chunks(TOGETHER).map(<[SlotRequest]>::to_vec))
        .collect();
    let (first, asks) = behind_one(&*store, &portions).await;
    for gone in [&many[..4_000], &many[5_000..9_990]] {
        let leaves: Vec<_> = gone.iter().map(|ask| leave(ask, false)).collect();
        admit(&*store, &[], &leaves).await;
    }
    let late = crowd(TENANT, 200_000, 1);
    admit(&*store, &late, &[]).await;
    let asks = asks.into_iter().chain(late.into_iter().map(|ask| (ask.key, ask))).collect();
    // A thousand and eleven are left of this one.
    let order = drain(&*store, &asks, &first, 2_022).await;
    for (place, round) in order.chunks(2).enumerate() {
        let tenants: Vec<TenantId> = round.iter().map(|ask| ask.tenant).collect();
        assert_eq!(tenants, [TENANT, other], "in round {place}");
    }
}

#[tokio::test]
async fn a_group_that_comes_back_gets_no_turn_in_a_round_that_has_passed() {
    let database = testkit::migrated(store::Postgres::migrate).await;
    let store = crate::postgres(&database.url).await;
    let other = store.tenant("other", at(0)).await.unwrap();
    let patient = crowd(other, 1, 10);
    let (first, asks) = behind_one(&*store, std::slice::from_ref(&patient)).await;
    let on = drain(&*store, &asks, &first, 1).await.remove(0);
    let late = crowd(TENANT, 1_000, 5);
    admit(&*store, &late, &[]).await;
    let asks = asks.into_iter().chain(late.into_iter().map(|ask| (ask.key, ask))).collect();
    let order = drain(&*store, &asks, &on, 4).await;
    let tenants: Vec<TenantId> = order.into_iter().map(|ask| ask.tenant).collect();
    assert_eq!(tenants, [TENANT, other, TENANT, other]);
}

#[tokio::test]
async fn weights_of_three_to_one_give_three_to_one_within_two_percent() {
    let database = testkit::migrated(store::Postgres::migrate).await;
    let store = crate::postgres(&database.url).await;
    let heavy = store.tenant("heavy", at(0)).await.unwrap();
    store.set_weight(heavy, 3).await.unwrap();
    let order = arrivals(&store, vec![crowd(TENANT, 100_000, 5_000), crowd(heavy, 1, 5_000)], 4_000).await;
    let heavies = order.iter().filter(|tenant| **tenant == heavy).count();
    assert!((2_940..=3_060).contains(&heavies), "{heavies} of 4,000 came from the tenant of weight three");
}

#[tokio::test]
async fn a_thousand_tenants_among_a_hundred_thousand_tasks_of_one_all_come_soon() {
    let database = testkit::migrated(store::Postgres::migrate).await;
    let store = crate::postgres(&database.url).await;
    let mut crowds = vec![crowd(TENANT, 1_000_000, 100_000)];
    let mut small = Vec::new();
    for number in 1..=1_000 {
        let tenant = store.tenant(&format!("small-{number}"), at(0)).await.unwrap();
        small.extend(crowd(tenant, number, 1));
    }
    crowds.push(small);
    let order = arrivals(&store, crowds, 2_100).await;
    let finished = order.iter().filter(|tenant| **tenant != TENANT).count();
    assert_eq!((finished, order.len()), (1_000, 2_100));
}
