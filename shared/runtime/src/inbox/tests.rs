//! A submission's way through the inbox, whatever happens to the batches that it is in.

use std::future::pending;

use futures::future::join_all;
use uuid::Uuid;

use super::*;

/// What happens to a batch that holds a certain number.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Poison,
    Panic,
    Conflict,
    Outage,
    Hang,
}

#[derive(Default)]
struct Fake {
    trouble: Mutex<Option<(u32, Trouble)>>,
    batches: Mutex<Vec<Vec<u32>>>,
    abandoned: Mutex<Vec<u32>>,
}

impl Settle for Fake {
    type Submission = u32;
    type Outcome = u32;
    type After = ();

    fn subject(submission: &u32) -> (RunId, bool) {
        (RunId(Uuid::from_u128((*submission).into())), false)
    }

    async fn settle(&self, batch: Vec<u32>) -> Result<(Vec<u32>, ())> {
        lock(&self.batches).push(batch.clone());
        let trouble = *lock(&self.trouble);
        match trouble.filter(|(number, _)| batch.contains(number)).map(|(_, trouble)| trouble) {
            Some(Trouble::Poison) => Err(Error::Paused("poison".into())),
            Some(Trouble::Panic) => panic!("deciding it breaks down"),
            Some(Trouble::Conflict) if batch.len() > 1 => Err(store::Error::Conflict.into()),
            Some(Trouble::Outage) => Err(Error::Bus(bus::Error::Unavailable("away".into()))),
            Some(Trouble::Hang) => pending().await,
            Some(Trouble::Conflict) | None => Ok((batch, ())),
        }
    }

    async fn after(&self, (): ()) {}

    async fn abandoned(&self, outcomes: Vec<u32>) {
        lock(&self.abandoned).extend(outcomes);
    }
}

/// Submits numbers that all end up in one batch. Returns their outcomes, and the batches that were tried.
async fn submit(trouble: Option<(u32, Trouble)>) -> (Vec<Result<u32>>, Vec<Vec<u32>>) {
    let (inbox, fake) = (Inbox::default(), Fake { trouble: Mutex::new(trouble), ..Fake::default() });
    let turns = inbox.turns.acquire_many(MAX_CONCURRENT_TURNS as u32).await.unwrap();
    let all = join_all((1..=4).map(|number| inbox.submit(&fake, number)));
    let begin = async {
        tokio::task::yield_now().await;
        drop(turns);
    };
    let (outcomes, ()) = tokio::join!(all, begin);
    (outcomes, fake.batches.into_inner().unwrap())
}

fn values(outcomes: &[Result<u32>]) -> Vec<Option<u32>> {
    outcomes.iter().map(|outcome| outcome.as_ref().ok().copied()).collect()
}

#[tokio::test]
async fn submissions_that_arrive_together_share_a_transaction() {
    let (outcomes, batches) = submit(None).await;
    assert_eq!(values(&outcomes), [Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(batches, [[1, 2, 3, 4]]);
}

#[tokio::test]
async fn submissions_of_one_caller_share_a_transaction_even_if_nobody_has_a_turn() {
    let (inbox, fake) = (Inbox::default(), Fake::default());
    let outcomes = inbox.submit_all(&fake, vec![1, 2, 3]).await;
    assert_eq!(values(&outcomes), [Some(1), Some(2), Some(3)]);
    assert_eq!(fake.batches.into_inner().unwrap(), [[1, 2, 3]]);
}

#[tokio::test]
async fn a_poisoned_submission_fails_alone() {
    let (outcomes, batches) = submit(Some((3, Trouble::Poison))).await;
    assert_eq!(values(&outcomes), [Some(1), Some(2), None, Some(4)]);
    assert!(matches!(outcomes[2], Err(Error::Paused(_))), "{:?}", outcomes[2]);
    assert_eq!(batches, [vec![1, 2, 3, 4], vec![1, 2], vec![3, 4], vec![3], vec![4]]);
}

#[tokio::test]
async fn a_submission_that_panics_fails_alone() {
    let (outcomes, _) = submit(Some((2, Trouble::Panic))).await;
    assert_eq!(values(&outcomes), [Some(1), None, Some(3), Some(4)]);
    assert!(matches!(outcomes[1], Err(Error::Defect)), "{:?}", outcomes[1]);
}

#[tokio::test]
async fn a_conflict_is_halved_until_it_is_gone() {
    let (outcomes, batches) = submit(Some((1, Trouble::Conflict))).await;
    assert_eq!(values(&outcomes), [Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(batches, [vec![1, 2, 3, 4], vec![1, 2], vec![1], vec![2], vec![3, 4]]);
}

#[tokio::test]
async fn an_outage_fails_everybody_at_once() {
    let (outcomes, batches) = submit(Some((1, Trouble::Outage))).await;
    assert_eq!(batches.len(), 1);
    for outcome in outcomes {
        assert!(matches!(&outcome, Err(error) if error.is_outage()), "{outcome:?}");
    }
}

#[tokio::test]
async fn the_others_submit_again_where_the_caller_with_the_turn_goes_away() {
    let fake = Fake { trouble: Mutex::new(Some((1, Trouble::Hang))), ..Fake::default() };
    let inbox = Inbox::default();
    let turns = inbox.turns.acquire_many(MAX_CONCURRENT_TURNS as u32).await.unwrap();
    let mut first = Box::pin(inbox.submit(&fake, 1));
    let mut second = Box::pin(inbox.submit(&fake, 2));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(futures::poll!(&mut second).is_pending());
    drop(turns);
    assert!(futures::poll!(&mut first).is_pending());
    assert_eq!(*lock(&fake.batches), [[1, 2]], "the first takes the second along");
    drop(first);
    let outcome = testkit::within_deadline("the second submits again", second).await;
    assert_eq!(outcome.unwrap(), 2);
}

#[tokio::test]
async fn the_outcome_of_a_caller_that_went_away_is_seen_to() {
    let (inbox, fake) = (Inbox::default(), Fake::default());
    let turns = inbox.turns.acquire_many(MAX_CONCURRENT_TURNS as u32).await.unwrap();
    let mut gone = Box::pin(inbox.submit(&fake, 1));
    assert!(futures::poll!(&mut gone).is_pending());
    drop(gone);
    drop(turns);
    assert_eq!(inbox.submit(&fake, 2).await.unwrap(), 2);
    assert_eq!(*lock(&fake.abandoned), [1], "its command was settled all the same");
}
