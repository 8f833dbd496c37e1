//! Random graphs with random rules, conditions, switches, fan-outs and outcomes, in random order: the incremental
//! decisions must come to the same end as a slow evaluator that looks at the whole run. `EBB_FUZZ_SECONDS=600` looks at more of
//! them, `EBB_SEED=N` at others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ebbflow_engine::{Command, Directive, Mark, Operation, Outcome};
use model::message::TaskResult;
use model::{
    Case, Failure, FanOut, Message, RunState, TaskIndex, TaskKind, TaskSpec, TaskState, Tolerance,
    TriggerRule, Workflow,
};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult, TestRunner};
use serde_json::{Value, json};
use testkit::Fuzzing;

use crate::operators::{by, operate};
use crate::rows::Rows;

const RULES: [TriggerRule; 10] = [
    TriggerRule::AllSuccess,
    TriggerRule::AllFailed,
    TriggerRule::AllDone,
    TriggerRule::OneSuccess,
    TriggerRule::OneFailed,
    TriggerRule::NoneFailed,
    TriggerRule::NoneFailedMinOneSuccess,
    TriggerRule::NoneSkipped,
    TriggerRule::Always,
    TriggerRule::AnyOf,
];

/// What a task is, and how it ends once it may begin.
#[derive(Clone, Debug)]
enum Behaviour {
    /// Its condition does not hold.
    Unwanted,
    /// A worker executes it, and it succeeds or fails.
    Worked(bool),
    /// It is a switch that chooses its branches, or passes them over.
    Chooses(bool),
    /// It is a fan-out with children that succeed or fail, the number that may fail, and the maximum number at a time.
    Fans(Vec<bool>, u32, Option<u32>),
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    let children = proptest::collection::vec(any::<bool>(), 0..5);
    prop_oneof![
        1 => Just(Behaviour::Unwanted),
        6 => any::<bool>().prop_map(Behaviour::Worked),
        2 => any::<bool>().prop_map(Behaviour::Chooses),
        2 => (children, 0u32..3, proptest::option::of(1u32..3))
            .prop_map(|(children, tolerated, cap)| Behaviour::Fans(children, tolerated, cap)),
    ]
}

/// A graph whose edges lead from lower to higher tasks only, with a rule and a behaviour for each task. A switch has the
/// next task as its only branch, so that no task is a branch of two.
fn graphs() -> impl Strategy<Value = (Workflow, Vec<Behaviour>)> {
    (1usize..12).prop_flat_map(|size| {
        let edges = proptest::collection::vec(any::<bool>(), size * size);
        let rules = proptest::collection::vec(0..RULES.len(), size);
        let behaviours = proptest::collection::vec(behaviours(), size);
        (Just(size), edges, rules, behaviours).prop_map(|(size, edges, rules, behaviours)| {
            let names: Vec<String> = (0..size).map(|index| format!("t{index}")).collect();
            let mut workflow = testkit::workflow(&names.join(", "));
            for to in 0..size {
                let parents = (0..to).filter(|from| edges[from * size + to]);
                workflow.tasks[to].depends_on = parents.map(|from| names[from].clone()).collect();
                workflow.tasks[to].trigger_rule = RULES[rules[to]];
                // Half of them are for remote workers: the rows check what is offered after each decision.
                workflow.tasks[to].leased = to % 2 == 1;
                shape(&mut workflow.tasks[to], &behaviours[to], names.get(to + 1));
            }
            (workflow, behaviours)
        })
    })
}

fn shape(task: &mut TaskSpec, behaviour: &Behaviour, next: Option<&String>) {
    match behaviour {
        Behaviour::Unwanted => task.when = Some("false".into()),
        Behaviour::Worked(_) => {}
        Behaviour::Chooses(_) => {
            task.kind = TaskKind::Switch;
            task.cases = vec![Case { when: None, next: next.cloned().into_iter().collect() }];
        }
        Behaviour::Fans(_, tolerated, max_parallel) => {
            let (for_each, tolerated_failures) = ("[]".into(), Tolerance::Count(*tolerated));
            let child = Box::new(TaskSpec { name: String::new(), ..task.clone() });
            task.kind = TaskKind::FanOut;
            task.fan_out =
                Some(FanOut { for_each, max_parallel: *max_parallel, tolerated_failures, task: child });
        }
    }
}

fn director(behaviours: Vec<Behaviour>) -> impl Fn(&ebbflow_engine::Graph, TaskIndex) -> Directive + 'static {
    move |graph, task| match &behaviours[task.at()] {
        Behaviour::Unwanted => Directive::Skip { condition: "false".into(), seen: json!({}) },
        Behaviour::Worked(_) => Directive::Go,
        Behaviour::Chooses(chosen) => {
            let next = graph.indices().filter(|next| *chosen && graph.is_branch(task, *next)).collect();
            Directive::Choose { next, why: Value::Null }
        }
        Behaviour::Fans(children, ..) => Directive::FanOut(vec![Value::Null; children.len()]),
    }
}
/// What a rule requires of all parents at once, as its documentation says.
/// What a rule asks for, said over all parents at once, as its documentation says it.
fn by_rule(rule: TriggerRule, parents: &[TaskState]) -> TaskState {
    use TaskState::{Failed, Pending as Go, Skipped, Succeeded, UpstreamFailed};
    let bad = |state: &TaskState| matches!(state, Failed | UpstreamFailed);
    let (any_bad, all_bad) = (parents.iter().any(bad), parents.iter().all(bad));
    let any_good = parents.contains(&Succeeded);
    let any_skipped = parents.contains(&Skipped);
    let unless = |holds: bool, otherwise: TaskState| if holds { Go } else { otherwise };
    let spoiled = if any_bad { UpstreamFailed } else { Skipped };
    match rule {
        _ if parents.is_empty() => Go,
        TriggerRule::Always | TriggerRule::AllDone => Go,
        TriggerRule::AllSuccess | TriggerRule::NoneFailedMinOneSuccess => {
            unless(!any_bad && any_good, spoiled)
        }
        TriggerRule::AllFailed => unless(all_bad, Skipped),
        TriggerRule::OneSuccess | TriggerRule::AnyOf => unless(any_good, spoiled),
        TriggerRule::OneFailed => unless(any_bad, Skipped),
        TriggerRule::NoneFailed => unless(!any_bad, UpstreamFailed),
        TriggerRule::NoneSkipped => unless(!any_skipped, Skipped),
    }
}

fn by_behaviour(behaviour: &Behaviour) -> TaskState {
    let well = match behaviour {
        Behaviour::Unwanted => return TaskState::Skipped,
        Behaviour::Worked(well) => *well,
        Behaviour::Chooses(_) => true,
        Behaviour::Fans(children, tolerated, _) => {
            children.iter().filter(|well| !**well).count() <= *tolerated as usize
        }
    };
    if well { TaskState::Succeeded } else { TaskState::Failed }
}

/// Obviously right: each task in order, from how all its parents ended, unless a person marked it.
fn reference(
    workflow: &Workflow,
    behaviours: &[Behaviour],
    marks: &BTreeMap<usize, TaskState>,
) -> Vec<TaskState> {
    let mut states: Vec<TaskState> = Vec::new();
    for (index, task) in workflow.tasks.iter().enumerate() {
        if let Some(mark) = marks.get(&index) {
            states.push(*mark);
            continue;
        }
        let position = |name: &String| workflow.tasks.iter().position(|task| task.name == *name).unwrap();
        let mut parents: BTreeMap<usize, TaskState> =
            task.depends_on.iter().map(position).map(|parent| (parent, states[parent])).collect();
        let before = index.checked_sub(1);
        if let Some(switch) = before.filter(|before| matches!(behaviours[*before], Behaviour::Chooses(_))) {
            // A switch that a person marks chooses nothing.
            let chosen =
                matches!(behaviours[switch], Behaviour::Chooses(true)) && !marks.contains_key(&switch);
            if states[switch] == TaskState::Succeeded && !chosen {
                states.push(TaskState::Skipped);
                continue;
            }
            parents.insert(switch, states[switch]);
        }
        let parents: Vec<TaskState> = parents.into_values().collect();
        states.push(match by_rule(task.trigger_rule, &parents) {
            TaskState::Pending => by_behaviour(&behaviours[index]),
            ended => ended,
        });
    }
    states
}

/// Reports one dispatched task, twice. Returns whether there was any.
fn answer(rows: &mut Rows, behaviours: &[Behaviour], choice: u8) -> bool {
    // What is leased is offered, the rest is announced.
    let offered: Vec<(TaskIndex, u32)> =
        rows.offers.values().map(|offer| (offer.task, offer.attempt)).collect();
    let all = offered.len() + rows.announced.len();
    if all == 0 {
        return false;
    }
    let pick = usize::from(choice) % all;
    let (task, attempt) = match offered.get(pick) {
        Some(offer) => *offer,
        None => match rows.announced.swap_remove(pick - offered.len()) {
            Message::TaskDispatched(work) => (work.key.task, work.attempt),
            _ => return true,
        },
    };
    let well = match (rows.tasks[&task].child, behaviours.get(task.at())) {
        (Some(child), _) => match &behaviours[child.of.at()] {
            Behaviour::Fans(children, ..) => children[child.item as usize],
            other => panic!("{other:?} has a child"),
        },
        (None, Some(Behaviour::Worked(well))) => *well,
        (None, other) => panic!("{other:?} was dispatched"),
    };
    let result = match well {
        true => TaskResult::Succeeded(Value::Null),
        false => TaskResult::Failed(Failure::permanent("no")),
    };
    let report = Command::Report { task, attempt, worker: None, started_at: rows.now, result };
    rows.decide(&report);
    rows.decide(&report);
    true
}

/// Reports dispatched tasks in the order that `choices` picks, until none is left.
fn play(rows: &mut Rows, behaviours: &[Behaviour], choices: &[u8]) {
    let mut choices = choices.iter().cycle();
    while answer(rows, behaviours, *choices.next().unwrap()) {}
}

/// Something that a person does, to the task that a number picks.
#[derive(Clone, Copy, Debug)]
enum Action {
    Answer(u8),
    Pause,
    Resume,
    Cancel,
    Evaluate,
    Retry,
    Clear(u8),
    Mark(u8, bool),
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => any::<u8>().prop_map(Action::Answer),
        1 => Just(Action::Pause),
        1 => Just(Action::Resume),
        1 => Just(Action::Cancel),
        1 => Just(Action::Evaluate),
        2 => Just(Action::Retry),
        3 => any::<u8>().prop_map(Action::Clear),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(task, well)| Action::Mark(task, well)),
    ]
}

/// Does it, and keeps the marks that hold: a task that is rerun is no longer marked.
fn act(rows: &mut Rows, behaviours: &[Behaviour], marks: &mut BTreeMap<usize, TaskState>, action: Action) {
    use TaskState::{Cancelled, Failed, UpstreamFailed};
    let (own, all) = (rows.graph.len(), rows.tasks.len() as u32);
    let of_definition = |rows: &Rows, task: TaskIndex| rows.tasks[&task].child.map_or(task, |child| child.of);
    match action {
        Action::Answer(choice) => drop(answer(rows, behaviours, choice)),
        Action::Pause => drop(operate(rows, Operation::Pause)),
        Action::Resume => drop(operate(rows, Operation::Resume)),
        Action::Evaluate => drop(operate(rows, Operation::Evaluate)),
        Action::Cancel => drop(rows.decide(&Command::Cancel { actor: by().actor, reason: None })),
        Action::Retry => {
            let bad =
                |index: &TaskIndex| matches!(rows.tasks[index].state, Failed | UpstreamFailed | Cancelled);
            let roots: Vec<TaskIndex> = rows.graph.indices().filter(bad).collect();
            operate(rows, Operation::Retry);
            let below = rows.graph.descendants(roots.iter().copied());
            marks.retain(|task, _| !below.iter().chain(&roots).any(|rerun| rerun.at() == *task));
        }
        Action::Clear(number) => {
            let task = TaskIndex(u32::from(number) % all);
            if operate(rows, Operation::Clear(task)) == Outcome::Applied {
                let top = of_definition(rows, task);
                let below = rows.graph.descendants([top]);
                marks.retain(|task, _| *task != top.at() && !below.iter().any(|rerun| rerun.at() == *task));
            }
        }
        Action::Mark(number, well) => {
            let task = TaskIndex(u32::from(number) % own);
            let ended = rows.tasks[&task].state.is_final();
            let (mark, state) = match well {
                true => (Mark::Succeeded(Value::Null), TaskState::Succeeded),
                false => (Mark::Failed, Failed),
            };
            if operate(rows, Operation::Mark(task, mark)) == Outcome::Applied {
                let below = rows.graph.descendants([task]);
                marks.retain(|task, _| !ended || !below.iter().any(|rerun| rerun.at() == *task));
                marks.insert(task.at(), state);
            }
        }
    }
}

/// The number of cases that are tried, and then as many as there is time for.
const CASES: u32 = 3_000;

/// Tries what a strategy makes, as often and as long as wanted.
fn explore<S: Strategy>(test: &'static str, cases: &S, check: impl Fn(S::Value) -> TestCaseResult) {
    let fuzzing = Fuzzing::from_env();
    let usual = ProptestConfig::default();
    let config = ProptestConfig {
        cases: CASES,
        rng_seed: fuzzing.seed.map_or(usual.rng_seed, RngSeed::Fixed),
        source_file: Some(file!()),
        test_name: Some(test),
        ..usual
    };
    let (mut runner, mut tried, mut slowest) = (TestRunner::new(config), 0, Duration::ZERO);
    loop {
        let began = Instant::now();
        runner.run(cases, &check).unwrap_or_else(|failure| panic!("{test}: {failure}\nagain: {fuzzing}"));
        (tried, slowest) = (tried + CASES, slowest.max(began.elapsed()));
        if !fuzzing.goes_on() {
            break;
        }
    }
    println!("{test}: {tried} cases, {CASES} of them took at most {slowest:?}");
}

#[test]
fn cases_are_the_same_each_time() {
    let seed = ProptestConfig::default().rng_seed;
    assert!(
        matches!(seed, RngSeed::Fixed(_)),
        "cargo reads PROPTEST_RNG_SEED from .cargo/config.toml: {seed}"
    );
}

#[test]
fn the_end_is_what_evaluating_the_whole_run_gives() {
    let cases = (graphs(), proptest::collection::vec(any::<u8>(), 1..40));
    explore("the_end", &cases, |((workflow, behaviours), choices)| {
        let expected = reference(&workflow, &behaviours, &BTreeMap::new());
        let mut rows = Rows::directed(workflow, director(behaviours.clone()));
        play(&mut rows, &behaviours, &choices);
        let states: Vec<TaskState> = rows.states().into_iter().take(expected.len()).collect();
        prop_assert_eq!(states, expected.clone());
        let bad = |state: &TaskState| matches!(state, TaskState::Failed | TaskState::UpstreamFailed);
        let end = if expected.iter().any(bad) { RunState::Failed } else { RunState::Succeeded };
        prop_assert_eq!(rows.run.state, end, "{}", rows.stand());
        Ok(())
    });
}

#[test]
fn whatever_people_do_the_end_is_what_evaluating_the_whole_run_gives() {
    let steps = proptest::collection::vec(actions(), 1..40);
    let cases = (graphs(), steps, proptest::collection::vec(any::<u8>(), 1..40));
    explore("whatever_people_do", &cases, |((workflow, behaviours), actions, choices)| {
        let mut marks = BTreeMap::new();
        let mut rows = Rows::directed(workflow.clone(), director(behaviours.clone()));
        for action in actions {
            act(&mut rows, &behaviours, &mut marks, action);
        }
        act(&mut rows, &behaviours, &mut marks, Action::Resume);
        play(&mut rows, &behaviours, &choices);
        if rows.states().contains(&TaskState::Cancelled) {
            act(&mut rows, &behaviours, &mut marks, Action::Retry);
        }
        play(&mut rows, &behaviours, &choices);
        let expected = reference(&workflow, &behaviours, &marks);
        let states: Vec<TaskState> = rows.states().into_iter().take(expected.len()).collect();
        prop_assert_eq!(states, expected.clone(), "{}", rows.stand());
        let bad = |state: &TaskState| matches!(state, TaskState::Failed | TaskState::UpstreamFailed);
        let failures = expected.iter().filter(|state| bad(state)).count() as u32;
        let end = if failures > 0 { RunState::Failed } else { RunState::Succeeded };
        prop_assert_eq!((rows.run.state, rows.run.failures), (end, failures), "{}", rows.stand());
        for state in TaskState::ALL {
            let count = rows.states().into_iter().filter(|other| *other == state).count();
            prop_assert_eq!(rows.run.counts.of(state) as usize, count, "{}", rows.stand());
        }
        Ok(())
    });
}
