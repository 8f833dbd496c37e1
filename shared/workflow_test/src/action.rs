//! What people and programs do during a run.

use chrono::TimeDelta;
use engine::Graph;
use language::config::{self, Approval};
use language::document::{Fields, Node, Place, Report, Word, flag, hint, list, text};
use model::{TaskIndex, TaskKind, TaskSpec};
use serde_json::{Map, Value};

use crate::read;

/// An action at a certain time.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) at: Place,
    /// How long after the start of the run.
    pub(crate) after: TimeDelta,
    /// The actor.
    pub(crate) by: String,
    pub(crate) kind: ActionKind,
}

/// The kinds of actions.
#[derive(Clone, Debug)]
pub(crate) enum ActionKind {
    Signal { name: String, payload: Value },
    Approve { task: TaskIndex, fields: Map<String, Value> },
    Reject { task: TaskIndex, reason: Option<String> },
    Cancel { reason: Option<String> },
}

impl Action {
    /// Reads all actions, in chronological order.
    pub(crate) fn read_all(node: &Node, graph: &Graph, report: &mut Report<'_>) -> Vec<Self> {
        let nodes = list(node, report).unwrap_or_default();
        let mut actions: Vec<Self> =
            nodes.iter().filter_map(|node| Self::read(node, graph, report)).collect();
        actions.sort_by_key(|action| action.after);
        actions
    }

    fn read(node: &Node, graph: &Graph, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "an action", report)?;
        let after = fields.get("at").and_then(|node| read::span(node, report)).unwrap_or_default();
        let by = read::words(&mut fields, "by", report).unwrap_or_else(|| "someone".to_owned());
        let signal = fields.get("signal").and_then(|node| text(node, report));
        let approve = fields.get("approve").and_then(|node| text(node, report));
        let reject = fields.get("reject").and_then(|node| text(node, report));
        let cancel = fields.get("cancel").and_then(|node| flag(node, report));
        let answered = approve.or(reject).and_then(|task| approval(task, graph, report));
        let action = match (signal, approve, reject, cancel) {
            (Some(name), None, None, None) => {
                check_signal(name, graph, report);
                let payload = fields.get("payload").map_or(Value::Null, Node::to_json);
                Some(ActionKind::Signal { name: name.text.to_owned(), payload })
            }
            (None, Some(_), None, None) => {
                let filled = fields.get("fields").map(|node| read::mapping(node, report)).unwrap_or_default();
                answered.map(|task| ActionKind::Approve { task, fields: filled })
            }
            (None, None, Some(_), None) => {
                let reason = read::words(&mut fields, "reason", report);
                answered.map(|task| ActionKind::Reject { task, reason })
            }
            (None, None, None, Some(true)) => {
                Some(ActionKind::Cancel { reason: read::words(&mut fields, "reason", report) })
            }
            _ => {
                let message = "expected one of `signal`, `approve`, `reject` or `cancel: true`";
                report.add(&node.at, message, None);
                None
            }
        };
        fields.finish(report);
        let action = Self { at: node.at.clone(), after, by, kind: action? };
        action.check_answer(graph, report);
        Some(action)
    }

    /// Reports an answer that the real approval would reject.
    fn check_answer(&self, graph: &Graph, report: &mut Report<'_>) {
        let (ActionKind::Approve { task, .. } | ActionKind::Reject { task, .. }) = &self.kind else { return };
        let spec = graph.spec(*task);
        let ask = config::read::<Approval>(spec.kind, spec.config.clone()).ok();
        let Some(ask) = ask else { return };
        if !ask.allows(&self.by) {
            let message = format!("{} may not answer `{}`", self.by, spec.name);
            report.add(&self.at, message, Some("name an approver with `by`".to_owned()));
        }
        if let ActionKind::Approve { fields, .. } = &self.kind {
            ask.problems(fields).into_iter().for_each(|problem| report.add(&self.at, problem, None));
        }
    }

    /// The action in a few words.
    pub(crate) fn describe(&self, graph: &Graph) -> String {
        let name = |task: &TaskIndex| &graph.spec(*task).name;
        match &self.kind {
            ActionKind::Signal { name, .. } => format!("the signal `{name}`"),
            ActionKind::Approve { task, .. } => format!("the approval of `{}`", name(task)),
            ActionKind::Reject { task, .. } => format!("the rejection of `{}`", name(task)),
            ActionKind::Cancel { .. } => "the cancellation".to_owned(),
        }
    }
}

fn check_signal(name: Word<'_>, graph: &Graph, report: &mut Report<'_>) {
    if graph.waiting_for(name.text).next().is_none() {
        let waiting = graph.workflow().tasks.iter().filter(|spec| spec.kind == TaskKind::WaitForSignal);
        let names = waiting.filter_map(|spec| spec.config["signal"].as_str());
        report.add(name.at, format!("no task waits for a signal `{}`", name.text), hint(name.text, names));
    }
}

/// The approval of that name.
fn approval(name: Word<'_>, graph: &Graph, report: &mut Report<'_>) -> Option<TaskIndex> {
    let approvals = |spec: &&TaskSpec| spec.kind == TaskKind::Approval;
    let found = graph.index_of(name.text).filter(|task| approvals(&graph.spec(*task)));
    if found.is_none() {
        let names = graph.workflow().tasks.iter().filter(approvals).map(|spec| spec.name.as_str());
        report.add(name.at, format!("there is no approval `{}`", name.text), hint(name.text, names));
    }
    found
}
