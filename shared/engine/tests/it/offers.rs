//! Offers: what remote workers may take. That exactly the dispatched tasks that workers lease are offered, the rows
//! check after each decision of every test.

use chrono::TimeDelta;
use model::{ErrorClass, Label, Labels, TaskIndex};

use crate::rows::Happened::{Cancel, Claim, Fail, HandBack, Lose, Ok as Done, Wake};
use crate::rows::Rows;

fn remote() -> Rows {
    let mut workflow = testkit::workflow("a -> b");
    for task in &mut workflow.tasks {
        (task.queue, task.leased) = ("gpu".into(), true);
        task.requires = Labels([("gpu".to_owned(), Label::Flag(true))].into());
        task.priority = 2;
        task.retry.max_retries = 3;
        task.retry.initial_delay_seconds = 1.0;
    }
    Rows::of(workflow)
}

fn offered(rows: &Rows) -> Vec<(u32, u32)> {
    rows.offers.values().map(|offer| (offer.task.0, offer.attempt)).collect()
}

#[test]
fn an_offer_says_who_may_take_it_and_when_its_turn_is() {
    let rows = remote();
    let offer = &rows.offers[&TaskIndex(0)];
    assert_eq!((offer.queue.as_str(), offer.kind.as_str(), offer.backfill), ("gpu", "noop", None));
    assert_eq!(offer.requires, Labels([("gpu".to_owned(), Label::Flag(true))].into()));
    let since = rows.tasks[&TaskIndex(0)].since;
    assert_eq!(
        offer.rank,
        (since - TimeDelta::minutes(2)).timestamp_millis(),
        "a step of priority is a minute"
    );
}

#[test]
fn an_attempt_is_offered_until_it_is_claimed_and_the_next_one_after_it() {
    let mut rows = remote();
    assert_eq!(offered(&rows), [(0, 1)]);
    for (happened, expected) in [
        (Claim("a", 1), vec![]),
        (HandBack("a", 1), vec![(0, 2)]),
        (Claim("a", 2), vec![]),
        (Lose("a", 2), vec![(0, 3)]),
        (Claim("a", 3), vec![]),
        (Fail("a", 3, ErrorClass::Transient), vec![]),
        (Wake("a"), vec![(0, 4)]),
        (Done("a", 4), vec![(1, 1)]),
        (Cancel, vec![]),
    ] {
        rows.play(&happened);
        assert_eq!(offered(&rows), expected, "after {happened:?}");
    }
}
