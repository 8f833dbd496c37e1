//! Claims about lists of runs in other orders, by label, by date and by text.

use std::collections::BTreeSet;

use model::{RunId, RunState};
use serde_json::json;
use store::{Part, RunCursor, RunFilter, RunSort};

use crate::Subject;
use crate::example::{TENANT, at, create, definition, finish, new_run, run_id, step};

/// Runs 1 to 6, created a second apart; those of an even number are green, number 5 failed at last.
async fn six_runs(store: &Subject) {
    store.register(&definition("example", "h1")).await.unwrap();
    let version = store.workflow(TENANT, "example").await.unwrap().unwrap().version.id;
    for number in 1..=6 {
        let mut new_run = new_run(run_id(number), version, 3);
        new_run.changes.run.created_at = at(number as i64);
        let team = if number % 2 == 0 { "green" } else { "red" };
        new_run.facts.labels = json!({"team": team, "number": number as u64}).as_object().unwrap().clone();
        new_run.facts.trigger_by = format!("Ada {number}");
        create(&**store, &new_run).await.unwrap();
    }
}

async fn list(store: &Subject, filter: RunFilter) -> Vec<u128> {
    let page = store.runs(TENANT, &filter).await.unwrap();
    page.into_iter().map(|record| record.run.id.0.as_u128()).collect()
}

fn filter() -> RunFilter {
    RunFilter { limit: 9, ..RunFilter::default() }
}

pub(crate) async fn runs_are_listed_oldest_first(store: Subject) {
    six_runs(&store).await;
    let oldest = RunFilter { sort: RunSort::Oldest, ..filter() };
    assert_eq!(list(&store, oldest.clone()).await, [1, 2, 3, 4, 5, 6]);
    let on = RunFilter { after: Some((at(2), run_id(2))), limit: 2, ..oldest };
    assert_eq!(list(&store, on).await, [3, 4]);
}

pub(crate) async fn runs_that_ended_are_listed_by_their_ends(store: Subject) {
    six_runs(&store).await;
    for number in [4, 1, 6] {
        finish(&*store, run_id(number)).await;
    }
    let ends: Vec<RunCursor> = {
        let ended = RunFilter { sort: RunSort::FirstEnded, ..filter() };
        let found = store.runs(TENANT, &ended).await.unwrap();
        found.iter().map(|record| RunSort::FirstEnded.place(&record.run).unwrap()).collect()
    };
    let ids: BTreeSet<RunId> = ends.iter().map(|(_, run)| *run).collect();
    assert_eq!(ids, [4, 1, 6].map(run_id).into(), "what has not ended is left out");
    assert!(ends.is_sorted(), "{ends:?}");
    let last = RunFilter { sort: RunSort::LastEnded, after: Some(ends[2]), ..filter() };
    let expected: Vec<u128> = [ends[1], ends[0]].iter().map(|(_, run)| run.0.as_u128()).collect();
    assert_eq!(list(&store, last.clone()).await, expected);
    let cancelled = RunFilter { state: Some(RunState::Cancelled), ..last.clone() };
    assert_eq!(list(&store, cancelled).await.len(), 2);
    let none = RunFilter { state: Some(RunState::Failed), ..last };
    assert_eq!(list(&store, none).await, [0; 0]);
}

pub(crate) async fn runs_are_found_by_a_label(store: Subject) {
    six_runs(&store).await;
    let labelled = |label: &str| RunFilter { label: Some(label.into()), ..filter() };
    assert_eq!(list(&store, labelled("team=green")).await, [6, 4, 2]);
    assert_eq!(list(&store, labelled("number=3")).await, [3], "a number is written as it is in JSON");
    assert_eq!(list(&store, labelled("team=blue")).await, [0; 0]);
    assert_eq!(list(&store, labelled("team")).await, [0; 0]);
    let upwards = RunFilter { sort: RunSort::Oldest, ..labelled("team=green") };
    assert_eq!(list(&store, RunFilter { after: Some((at(2), run_id(2))), ..upwards }).await, [4, 6]);
    let page = RunFilter { after: Some((at(4), run_id(4))), ..labelled("team=green") };
    assert_eq!(list(&store, page).await, [2]);
    finish(&*store, run_id(4)).await;
    let both = RunFilter { state: Some(RunState::Cancelled), ..labelled("team=green") };
    assert_eq!(list(&store, both).await, [4]);
    store.forget(Part::Whole, &[run_id(4)]).await.unwrap();
    assert_eq!(list(&store, labelled("team=green")).await, [6, 2], "it is gone with its run");
}

pub(crate) async fn any_label_can_be_looked_for(store: Subject) {
    store.register(&definition("example", "h1")).await.unwrap();
    let version = store.workflow(TENANT, "example").await.unwrap().unwrap().version.id;
    let long = "x".repeat(5_000);
    let mut new_run = new_run(run_id(1), version, 1);
    new_run.facts.labels = json!({"long": long, "nul": "a\u{0}b", "": "", "none": null, "of": {"a": [1]}})
        .as_object()
        .unwrap()
        .clone();
    create(&*store, &new_run).await.unwrap();
    for label in [&*format!("long={long}"), "nul=a\0b", "=", "none=null", "of={\"a\":[1]}"] {
        let found = RunFilter { label: Some(label.to_owned()), ..filter() };
        assert_eq!(list(&store, found).await, [1], "{label}");
    }
    let other = RunFilter { label: Some(format!("long={long}y")), ..filter() };
    assert_eq!(list(&store, other).await, [0; 0]);
}

pub(crate) async fn runs_are_found_by_when_they_were_created(store: Subject) {
    six_runs(&store).await;
    let between = |after, before| RunFilter {
        created_after: Some(at(after)),
        created_before: Some(at(before)),
        ..filter()
    };
    assert_eq!(list(&store, between(2, 5)).await, [4, 3, 2], "from the first instant on, before the last");
    let labelled = RunFilter { label: Some("team=green".into()), ..between(3, 9) };
    assert_eq!(list(&store, labelled).await, [6, 4]);
    let upwards = RunFilter { sort: RunSort::Oldest, ..between(5, 9) };
    assert_eq!(list(&store, upwards).await, [5, 6]);
}

pub(crate) async fn runs_are_found_by_a_text_in_capitals_or_not(store: Subject) {
    six_runs(&store).await;
    step(&*store, run_id(2), |changes| changes.run.error = Some("Disk full".into())).await.unwrap();
    let text = |text: &str| RunFilter { text: Some(text.into()), ..filter() };
    assert_eq!(list(&store, text("disk FULL")).await, [2], "by its error");
    assert_eq!(list(&store, text("ada 5")).await, [5], "by who caused it");
    assert_eq!(list(&store, text("GREEN")).await, [6, 4, 2], "by its labels");
    assert_eq!(list(&store, text("EXAMPLE")).await.len(), 6, "by its workflow");
    assert_eq!(list(&store, text(&run_id(3).to_string())).await, [3], "by its id");
    assert_eq!(list(&store, text("100% _")).await, [0; 0]);
}

pub(crate) async fn a_horizon_is_so_many_rows_on_whether_they_pass_or_not(store: Subject) {
    six_runs(&store).await;
    let horizon = async |filter: &RunFilter, rows| store.horizon(TENANT, filter, rows).await.unwrap();
    let text = RunFilter { text: Some("nothing".into()), ..filter() };
    assert_eq!(horizon(&text, 2).await, Some((at(5), run_id(5))));
    assert_eq!(horizon(&text, 7).await, None, "there are fewer");
    let on = RunFilter { after: Some((at(5), run_id(5))), ..text };
    assert_eq!(horizon(&on, 2).await, Some((at(3), run_id(3))));
    let failed = Some(RunState::Failed);
    let labelled = RunFilter { label: Some("team=green".into()), state: failed, ..filter() };
    assert_eq!(horizon(&labelled, 2).await, Some((at(4), run_id(4))));
    let until = RunFilter { until: Some((at(3), run_id(3))), ..filter() };
    assert_eq!(list(&store, until).await, [6, 5, 4, 3]);
    let until = RunFilter { until: Some((at(3), run_id(3))), sort: RunSort::Oldest, ..filter() };
    assert_eq!(list(&store, until).await, [1, 2, 3]);
}
