//! Random graphs with random rules and outcomes, in random order: the incremental decisions must come to the
//! same end as a slow evaluator that looks at the whole run.

use crate::rows::Rows;
use ebbflow_engine::{Command, rule};
use model::message::TaskResult;
use model::task::Tally;
use model::{Failure, Message, RunState, TaskIndex, TaskState, TriggerRule, Workflow};
use proptest::prelude::*;
use serde_json::Value;

const RULES: [TriggerRule; 8] = [
    TriggerRule::AllSuccess,
    TriggerRule::AllFailed,
    TriggerRule::AllDone,
    TriggerRule::OneSuccess,
    TriggerRule::OneFailed,
    TriggerRule::NoneFailed,
    TriggerRule::NoneFailedMinOneSuccess,
    TriggerRule::NoneSkipped,
];

/// A graph whose edges lead from lower to higher tasks only, with a rule and an outcome for each task.
fn graphs() -> impl Strategy<Value = (Workflow, Vec<bool>)> {
    (1usize..12).prop_flat_map(|size| {
        let edges = proptest::collection::vec(any::<bool>(), size * size);
        let rules = proptest::collection::vec(0..RULES.len(), size);
        let outcomes = proptest::collection::vec(any::<bool>(), size);
        (Just(size), edges, rules, outcomes).prop_map(|(size, edges, rules, outcomes)| {
            let names: Vec<String> = (0..size).map(|index| format!("t{index}")).collect();
            let mut workflow = testkit::workflow(&names.join(", "));
            for to in 0..size {
                let parents = (0..to).filter(|from| edges[from * size + to]);
                workflow.tasks[to].depends_on = parents.map(|from| names[from].clone()).collect();
                workflow.tasks[to].trigger_rule = RULES[rules[to]];
            }
            (workflow, outcomes)
        })
    })
}

/// Obviously right: each task in order, looking at how all its parents ended.
fn reference(workflow: &Workflow, outcomes: &[bool]) -> Vec<TaskState> {
    let mut states: Vec<TaskState> = Vec::new();
    for (index, task) in workflow.tasks.iter().enumerate() {
        let position = |name: &String| workflow.tasks.iter().position(|task| task.name == *name).unwrap();
        let mut tally = Tally::default();
        task.depends_on.iter().for_each(|parent| tally.count(states[position(parent)]));
        states.push(match rule::judge(task.trigger_rule, task.depends_on.len() as u32, tally) {
            rule::Verdict::Go if outcomes[index] => TaskState::Succeeded,
            rule::Verdict::Go => TaskState::Failed,
            rule::Verdict::Skip => TaskState::Skipped,
            rule::Verdict::UpstreamFailed => TaskState::UpstreamFailed,
            rule::Verdict::Wait => panic!("all parents have ended"),
        });
    }
    states
}

/// Answers announced work in the order that `choices` picks, each report twice, until none is left.
fn play(rows: &mut Rows, outcomes: &[bool], choices: &[u8]) {
    let mut next = 0;
    while !rows.announced.is_empty() {
        let pick = usize::from(choices[next % choices.len()]) % rows.announced.len();
        next += 1;
        let Message::TaskDispatched(work) = rows.announced.swap_remove(pick) else { continue };
        let result = match outcomes[work.key.task.at()] {
            true => TaskResult::Succeeded(Value::Null),
            false => TaskResult::Failed(Failure::permanent("no")),
        };
        let report = Command::Report {
            task: work.key.task,
            attempt: work.attempt,
            worker: None,
            started_at: rows.now,
            result,
        };
        rows.decide(&report);
        rows.decide(&report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_end_is_what_a_look_at_the_whole_run_says(
        (workflow, outcomes) in graphs(),
        choices in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let expected = reference(&workflow, &outcomes);
        let mut rows = Rows::of(workflow);
        play(&mut rows, &outcomes, &choices);
        prop_assert_eq!(rows.states(), expected.clone());
        let bad = |state: &TaskState| matches!(state, TaskState::Failed | TaskState::UpstreamFailed);
        let end = if expected.iter().any(bad) { RunState::Failed } else { RunState::Succeeded };
        prop_assert_eq!(rows.run.state, end);
        for (index, state) in (0..).map(TaskIndex).zip(&expected) {
            prop_assert_eq!(rows.tasks[&index].state, *state);
        }
    }
}
