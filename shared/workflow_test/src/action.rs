//! What people and programs do during a run.

use chrono::TimeDelta;
use engine::Graph;
use language::config::{self, Approval};
use language::document::{ActionFields, Node, Position, Record, Report, Word, hint};
use model::{TaskIndex, TaskKind, TaskSpec};
use serde_json::{Map, Value};

use crate::suite::mapping;

/// An action at a certain time.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) at: Position,
    /// How long after the start of the run.
    pub(crate) after: TimeDelta,
    /// The name of the actor, for approvals.
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
    pub(crate) fn read_all(nodes: &[&Node], graph: &Graph, report: &mut Report<'_>) -> Vec<Self> {
        let mut actions: Vec<Self> =
            nodes.iter().filter_map(|node| Self::read(node, graph, report)).collect();
        actions.sort_by_key(|action| action.after);
        actions
    }

    fn read(node: &Node, graph: &Graph, report: &mut Report<'_>) -> Option<Self> {
        let fields = ActionFields::read(node, report)?;
        check_owners(&fields, report);
        let answered = fields.approve.or(fields.reject).and_then(|task| approval(task, graph, report));
        let reason = fields.reason.and_then(|reason| reason.value).map(|word| word.text.to_owned());
        let kind = match (fields.signal, fields.approve, fields.reject, fields.cancel) {
            (Some(name), None, None, None) => {
                check_signal(name, graph, report);
                let payload = fields.payload.and_then(|payload| payload.value);
                let payload = payload.map_or(Value::Null, Node::to_json);
                Some(ActionKind::Signal { name: name.text.to_owned(), payload })
            }
            (None, Some(_), None, None) => {
                let fields = fields.fields.and_then(|fields| fields.value).map(mapping).unwrap_or_default();
                answered.map(|task| ActionKind::Approve { task, fields })
            }
            (None, None, Some(_), None) => answered.map(|task| ActionKind::Reject { task, reason }),
            (None, None, None, Some(true)) => Some(ActionKind::Cancel { reason }),
            _ => {
                let message = "expected one of `signal`, `approve`, `reject` or `cancel: true`";
                report.add(&node.at, message, None);
                None
            }
        };
        let action = Self {
            at: node.at.clone(),
            after: fields.at.and_then(|after| TimeDelta::from_std(after.to_std()).ok()).unwrap_or_default(),
            by: fields.by.map_or("someone", |by| by.text).to_owned(),
            kind: kind?,
        };
        action.check_answer(graph, report);
        Some(action)
    }

    /// Reports an answer that the real approval would reject.
    fn check_answer(&self, graph: &Graph, report: &mut Report<'_>) {
        let (ActionKind::Approve { task, .. } | ActionKind::Reject { task, .. }) = &self.kind else { return };
        let spec = graph.spec(*task);
        let ask = config::read::<Approval>(&spec.kind, spec.config.clone()).ok();
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

/// Reports fields of other kinds of actions.
fn check_owners(fields: &ActionFields<'_>, report: &mut Report<'_>) {
    let owners = [
        ("payload", fields.payload.map(|given| given.at), fields.signal.is_some(), "`signal`"),
        ("fields", fields.fields.map(|given| given.at), fields.approve.is_some(), "`approve`"),
        (
            "reason",
            fields.reason.map(|given| given.at),
            fields.reject.is_some() || fields.cancel.is_some(),
            "`reject` or `cancel`",
        ),
    ];
    for (name, at, is_owned, owner) in owners {
        if let Some(at) = at.filter(|_| !is_owned) {
            report.add(at, format!("`{name}` needs {owner} beside it"), None);
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
