//! Lists of runs: by page, in every order, by label, by date and by text.

use std::collections::BTreeSet;

use auth::Permission::Read;
use model::{RunId, RunState};
use read::{RunCursor, RunFilter, RunSort};
use serde_json::json;
use store::{Definitions, Part, Postgres, Retention};

use crate::example::{TENANT, at, create, definition, finish, new_run, run_id, step};
use crate::world::World;

/// Runs 1 to 6, created a second apart; those of an even number are green, number 5 failed at last.
async fn six_runs(store: &Postgres) {
    store.register(&definition("example", "h1")).await.unwrap();
    let version = store.workflow(TENANT, "example").await.unwrap().unwrap().version.id;
    for number in 1..=6 {
        let mut new_run = new_run(run_id(number), version, 3);
        new_run.changes.run.created_at = at(number as i64);
        let team = if number % 2 == 0 { "green" } else { "red" };
        new_run.facts.labels = json!({"team": team, "number": number as u64}).as_object().unwrap().clone();
        new_run.facts.trigger_by = format!("Ada {number}");
        create(store, &new_run).await.unwrap();
    }
}

async fn list(world: &World, filter: RunFilter) -> Vec<u128> {
    let page = world.reader("viewer:default").runs().list(Read, &filter).await.unwrap();
    page.items.into_iter().map(|listed| listed.record.run.id.0.as_u128()).collect()
}

fn filter() -> RunFilter {
    RunFilter { limit: 9, ..RunFilter::default() }
}

#[tokio::test]
async fn runs_are_listed_oldest_first() {
    let world = World::new().await;
    let store = world.postgres();
    six_runs(store).await;
    let oldest = RunFilter { sort: RunSort::Oldest, ..filter() };
    assert_eq!(list(&world, oldest.clone()).await, [1, 2, 3, 4, 5, 6]);
    let on = RunFilter { after: Some((at(2), run_id(2))), limit: 2, ..oldest };
    assert_eq!(list(&world, on).await, [3, 4]);
}

#[tokio::test]
async fn runs_that_ended_are_listed_by_their_ends() {
    let world = World::new().await;
    let store = world.postgres();
    six_runs(store).await;
    for number in [4, 1, 6] {
        finish(store, run_id(number)).await;
    }
    let ends: Vec<RunCursor> = {
        let ended = RunFilter { sort: RunSort::FirstEnded, ..filter() };
        let found = world.reader("viewer:default").runs().list(Read, &ended).await.unwrap().items;
        let runs = found.iter().map(|listed| &listed.record.run);
        runs.map(|run| (run.finished_at.unwrap(), run.id)).collect()
    };
    let ids: BTreeSet<RunId> = ends.iter().map(|(_, run)| *run).collect();
    assert_eq!(ids, [4, 1, 6].map(run_id).into(), "what has not ended is left out");
    assert!(ends.is_sorted(), "{ends:?}");
    let last = RunFilter { sort: RunSort::LastEnded, after: Some(ends[2]), ..filter() };
    let expected: Vec<u128> = [ends[1], ends[0]].iter().map(|(_, run)| run.0.as_u128()).collect();
    assert_eq!(list(&world, last.clone()).await, expected);
    let cancelled = RunFilter { state: Some(RunState::Cancelled), ..last.clone() };
    assert_eq!(list(&world, cancelled).await.len(), 2);
    let none = RunFilter { state: Some(RunState::Failed), ..last };
    assert_eq!(list(&world, none).await, [0; 0]);
}

#[tokio::test]
async fn runs_are_found_by_a_label() {
    let world = World::new().await;
    let store = world.postgres();
    six_runs(store).await;
    let labelled = |label: &str| RunFilter { label: Some(label.into()), ..filter() };
    assert_eq!(list(&world, labelled("team=green")).await, [6, 4, 2]);
    assert_eq!(list(&world, labelled("number=3")).await, [3], "a number is written as it is in JSON");
    assert_eq!(list(&world, labelled("team=blue")).await, [0; 0]);
    assert_eq!(list(&world, labelled("team")).await, [0; 0]);
    let upwards = RunFilter { sort: RunSort::Oldest, ..labelled("team=green") };
    assert_eq!(list(&world, RunFilter { after: Some((at(2), run_id(2))), ..upwards }).await, [4, 6]);
    let page = RunFilter { after: Some((at(4), run_id(4))), ..labelled("team=green") };
    assert_eq!(list(&world, page).await, [2]);
    finish(store, run_id(4)).await;
    let both = RunFilter { state: Some(RunState::Cancelled), ..labelled("team=green") };
    assert_eq!(list(&world, both).await, [4]);
    store.forget(Part::Whole, &[run_id(4)]).await.unwrap();
    assert_eq!(list(&world, labelled("team=green")).await, [6, 2], "it is gone with its run");
}

#[tokio::test]
async fn any_label_can_be_looked_for() {
    let world = World::new().await;
    let store = world.postgres();
    store.register(&definition("example", "h1")).await.unwrap();
    let version = store.workflow(TENANT, "example").await.unwrap().unwrap().version.id;
    let long = "x".repeat(5_000);
    let mut new_run = new_run(run_id(1), version, 1);
    new_run.facts.labels = json!({"long": long, "nul": "a\u{0}b", "": "", "none": null, "of": {"a": [1]}})
        .as_object()
        .unwrap()
        .clone();
    create(store, &new_run).await.unwrap();
    for label in [&*format!("long={long}"), "nul=a\0b", "=", "none=null", "of={\"a\":[1]}"] {
        let found = RunFilter { label: Some(label.to_owned()), ..filter() };
        assert_eq!(list(&world, found).await, [1], "{label}");
    }
    let other = RunFilter { label: Some(format!("long={long}y")), ..filter() };
    assert_eq!(list(&world, other).await, [0; 0]);
}

#[tokio::test]
async fn runs_are_found_by_when_they_were_created() {
    let world = World::new().await;
    let store = world.postgres();
    six_runs(store).await;
    let between = |after, before| RunFilter {
        created_after: Some(at(after)),
        created_before: Some(at(before)),
        ..filter()
    };
    assert_eq!(list(&world, between(2, 5)).await, [4, 3, 2], "from the first instant on, before the last");
    let labelled = RunFilter { label: Some("team=green".into()), ..between(3, 9) };
    assert_eq!(list(&world, labelled).await, [6, 4]);
    let upwards = RunFilter { sort: RunSort::Oldest, ..between(5, 9) };
    assert_eq!(list(&world, upwards).await, [5, 6]);
}

#[tokio::test]
async fn runs_are_found_by_a_text_in_capitals_or_not() {
    let world = World::new().await;
    let store = world.postgres();
    six_runs(store).await;
    step(store, run_id(2), |changes| changes.run.error = Some("Disk full".into())).await.unwrap();
    let text = |text: &str| RunFilter { text: Some(text.into()), ..filter() };
    assert_eq!(list(&world, text("disk FULL")).await, [2], "by its error");
    assert_eq!(list(&world, text("ada 5")).await, [5], "by who caused it");
    assert_eq!(list(&world, text("GREEN")).await, [6, 4, 2], "by its labels");
    assert_eq!(list(&world, text("EXAMPLE")).await.len(), 6, "by its workflow");
    assert_eq!(list(&world, text(&run_id(3).to_string())).await, [3], "by its id");
    assert_eq!(list(&world, text("100% _")).await, [0; 0]);
}

#[tokio::test]
async fn pages_of_runs_neither_repeat_nor_leave_out() {
    let world = World::new().await;
    six_runs(world.postgres()).await;
    for filter in [filter(), RunFilter { text: Some("example".into()), ..filter() }] {
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let filter = RunFilter { after, limit: 1, ..filter.clone() };
            let page = world.reader("viewer:default").runs().list(Read, &filter).await.unwrap();
            seen.extend(page.items.iter().map(|listed| listed.record.run.id.0.as_u128()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, [6, 5, 4, 3, 2, 1], "{filter:?}");
    }
}

#[tokio::test]
async fn a_page_that_examined_its_share_leads_on_though_nothing_passed() {
    let world = World::new().await;
    world.postgres().register(&definition("example", "h1")).await.unwrap();
    let version = world.postgres().workflow(TENANT, "example").await.unwrap().unwrap().version.id;
    for number in 1..=1_001 {
        let mut new_run = new_run(run_id(number), version, 1);
        new_run.changes.run.created_at = at(number as i64);
        create(world.postgres(), &new_run).await.unwrap();
    }
    let text = RunFilter { text: Some("nothing".into()), ..filter() };
    let reader = world.reader("viewer:default");
    let page = reader.runs().list(Read, &text).await.unwrap();
    assert_eq!((page.items.len(), page.next), (0, Some((at(2), run_id(2)))));
    let page = reader.runs().list(Read, &RunFilter { after: page.next, ..text }).await.unwrap();
    assert_eq!((page.items.len(), page.next), (0, None));
}
