//! What is expected of a run and its tasks.

use chrono::TimeDelta;
use language::document::{ExpectFields, Given, Key, Node, Position, Record, Report, Span, TaskFields, Word};
use language::duration::Duration;
use model::{RunState, TaskState};

use crate::fixtures::Fixtures;

/// The expectations of a run.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) state: (Position, RunState),
    pub(crate) took: Option<Range>,
    pub(crate) error: Option<(Position, String)>,
    pub(crate) tasks: Vec<ExpectTask>,
    pub(crate) order: Vec<(Position, String)>,
    /// A list; none if callbacks are not checked.
    pub(crate) callbacks: Option<Node>,
}

/// What is expected of a task.
#[derive(Clone, Debug)]
pub(crate) struct ExpectTask {
    pub(crate) name: String,
    pub(crate) at: Position,
    pub(crate) state: Option<(Position, TaskState)>,
    pub(crate) output: Option<Node>,
    pub(crate) config: Option<Node>,
    pub(crate) attempts: Option<(Position, u32)>,
    pub(crate) started: Option<Range>,
    pub(crate) finished: Option<Range>,
    pub(crate) after: Vec<(Position, String)>,
    pub(crate) error: Option<(Position, String)>,
}

/// A duration: exact, or within bounds.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) at: Position,
    pub(crate) least: Option<TimeDelta>,
    pub(crate) most: Option<TimeDelta>,
}

impl Expect {
    pub(crate) fn read(node: &Node, fixtures: &Fixtures, report: &mut Report<'_>) -> Option<Self> {
        let fields = ExpectFields::read(node, report)?;
        let mut tasks = Vec::new();
        for (key, node) in fields.tasks.unwrap_or_default() {
            fixtures.find(&key.name, &key.at, report);
            tasks.extend(ExpectTask::read(key, node, fixtures, report));
        }
        // Unless stated otherwise, the run must succeed.
        let state = located(fields.state).unwrap_or_else(|| (node.at.clone(), RunState::Succeeded));
        Some(Self {
            state,
            took: Range::of(fields.took),
            error: part(fields.error),
            tasks,
            order: names(fields.order, fixtures, report),
            callbacks: fields.callbacks.cloned(),
        })
    }
}

impl ExpectTask {
    fn read(key: &Key, node: &Node, fixtures: &Fixtures, report: &mut Report<'_>) -> Option<Self> {
        let fields = TaskFields::read_or_state(node, report)?;
        Some(Self {
            name: key.name.clone(),
            at: key.at.clone(),
            state: located(fields.state),
            output: fields.output.cloned(),
            config: fields.config.cloned(),
            attempts: located(fields.attempts),
            started: Range::of(fields.started),
            finished: Range::of(fields.finished),
            after: names(fields.started_after, fixtures, report),
            error: part(fields.error),
        })
    }
}

impl Range {
    fn of(span: Option<Given<'_, Span>>) -> Option<Self> {
        let Given { at, value } = span?;
        let bound = |bound: Option<Duration>| TimeDelta::from_std(bound?.to_std()).ok();
        let Span { at_least, at_most } = value?;
        Some(Self { at: at.clone(), least: bound(at_least), most: bound(at_most) })
    }
}

fn located<T>(given: Option<Given<'_, T>>) -> Option<(Position, T)> {
    given.and_then(|given| Some((given.at.clone(), given.value?)))
}

fn part(word: Option<Word<'_>>) -> Option<(Position, String)> {
    word.map(|word| (word.at.clone(), word.text.to_owned()))
}

/// The names of tasks, each of which must exist.
fn names(
    words: Option<Vec<Word<'_>>>,
    fixtures: &Fixtures,
    report: &mut Report<'_>,
) -> Vec<(Position, String)> {
    let words = words.unwrap_or_default();
    words.iter().for_each(|word| _ = fixtures.find(word.text, word.at, report));
    words.into_iter().map(|word| (word.at.clone(), word.text.to_owned())).collect()
}
