//! What is expected of a run and its tasks.

use chrono::TimeDelta;
use language::document::{Data, Fields, Node, Place, Report, choice, entries, list, text, whole};
use model::{RunState, TaskState};

use crate::fixtures::Fixtures;
use crate::read;

/// What is expected of a run.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) state: (Place, RunState),
    pub(crate) took: Option<Range>,
    pub(crate) error: Option<(Place, String)>,
    pub(crate) tasks: Vec<ExpectTask>,
    pub(crate) order: Vec<(Place, String)>,
    /// A list; none if callbacks are not checked.
    pub(crate) callbacks: Option<Node>,
}

/// What is expected of a task.
#[derive(Clone, Debug)]
pub(crate) struct ExpectTask {
    pub(crate) name: String,
    pub(crate) at: Place,
    pub(crate) state: Option<(Place, TaskState)>,
    pub(crate) output: Option<Node>,
    pub(crate) config: Option<Node>,
    pub(crate) attempts: Option<(Place, u32)>,
    pub(crate) started: Option<Range>,
    pub(crate) finished: Option<Range>,
    pub(crate) after: Vec<(Place, String)>,
    pub(crate) error: Option<(Place, String)>,
}

/// A duration: exact, or within bounds.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) at: Place,
    pub(crate) least: Option<TimeDelta>,
    pub(crate) most: Option<TimeDelta>,
}

impl Expect {
    pub(crate) fn read(node: &Node, fixtures: &Fixtures, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "`expect`", report)?;
        let states = RunState::ALL.map(RunState::name);
        let state = fields.get("state").and_then(|node| located(node, choice(node, &states, report)));
        let took = fields.get("took").and_then(|node| Range::read(node, report));
        let error = fields.get("error").and_then(|node| part(node, report));
        let tasks = fields.get("tasks").map(|node| entries(node, "`tasks`", report)).unwrap_or_default();
        let order = fields.get("order").map(|node| names(node, fixtures, report)).unwrap_or_default();
        let callbacks = fields.get("callbacks").filter(|node| list(node, report).is_some()).cloned();
        fields.finish(report);
        let mut expected = Vec::new();
        for (key, node) in tasks {
            fixtures.find(&key.name, &key.at, report);
            expected.extend(ExpectTask::read(&key.name, &key.at, node, fixtures, report));
        }
        // Unless stated otherwise, the run must succeed.
        let state = state.unwrap_or_else(|| (node.at.clone(), RunState::Succeeded));
        Some(Self { state, took, error, tasks: expected, order, callbacks })
    }
}

impl ExpectTask {
    /// A state, or a mapping.
    fn read(
        name: &str,
        at: &Place,
        node: &Node,
        fixtures: &Fixtures,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let states = TaskState::ALL.map(TaskState::name);
        let mut expected = Self::nothing(name, at);
        if let Data::Text(_) = node.data {
            expected.state = located(node, choice(node, &states, report));
            return Some(expected);
        }
        let mut fields = Fields::of(node, "an expectation of a task", report)?;
        expected.state = fields.get("state").and_then(|node| located(node, choice(node, &states, report)));
        // `null` is an output that can be expected.
        expected.output = fields.get_or_null("output").cloned();
        expected.config = fields.get("config").cloned();
        let attempts = fields.get("attempts");
        expected.attempts = attempts.and_then(|node| located(node, whole(node, 0..=u32::MAX, report)));
        expected.started = fields.get("started").and_then(|node| Range::read(node, report));
        expected.finished = fields.get("finished").and_then(|node| Range::read(node, report));
        let after = fields.get("started_after");
        expected.after = after.map(|node| names(node, fixtures, report)).unwrap_or_default();
        expected.error = fields.get("error").and_then(|node| part(node, report));
        fields.finish(report);
        Some(expected)
    }

    fn nothing(name: &str, at: &Place) -> Self {
        Self {
            name: name.to_owned(),
            at: at.clone(),
            state: None,
            output: None,
            config: None,
            attempts: None,
            started: None,
            finished: None,
            after: Vec::new(),
            error: None,
        }
    }
}

impl Range {
    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if !matches!(node.data, Data::Map(_)) {
            let exactly = read::span(node, report);
            return Some(Self { at: node.at.clone(), least: exactly, most: exactly });
        }
        let mut fields = Fields::of(node, "a duration", report)?;
        let least = fields.get("at_least").and_then(|node| read::span(node, report));
        let most = fields.get("at_most").and_then(|node| read::span(node, report));
        fields.finish(report);
        Some(Self { at: node.at.clone(), least, most })
    }
}

fn located<T>(node: &Node, value: Option<T>) -> Option<(Place, T)> {
    value.map(|value| (node.at.clone(), value))
}

fn part(node: &Node, report: &mut Report<'_>) -> Option<(Place, String)> {
    text(node, report).map(|word| (word.at.clone(), word.text.to_owned()))
}

/// One or more names of tasks.
fn names(node: &Node, fixtures: &Fixtures, report: &mut Report<'_>) -> Vec<(Place, String)> {
    let mut names = Vec::new();
    for node in read::one_or_more(node) {
        let Some(word) = text(node, report) else { continue };
        fixtures.find(word.text, word.at, report);
        names.push((word.at.clone(), word.text.to_owned()));
    }
    names
}
