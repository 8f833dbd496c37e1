//! What people and programs do while a run goes on.

use chrono::TimeDelta;
use engine::Graph;
use language::config::{self, Approval};
use language::document::{Fields, Node, Place, Report, Word, flag, hint, list, text};
use language::kinds::kind;
use model::{TaskIndex, TaskSpec};
use serde_json::{Map, Value};

use crate::read;

/// Something that is done at a certain time.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) at: Place,
    /// How long after the start of the run.
    pub(crate) after: TimeDelta,
    /// Who does it.
    pub(crate) by: String,
    pub(crate) deed: Deed,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Signal { name: String, payload: Value },
    Approve { task: TaskIndex, fields: Map<String, Value> },
    Reject { task: TaskIndex, reason: Option<String> },
    Cancel { reason: Option<String> },
}

impl Line {
    /// Reads all of them, in the order in which they are done.
    pub(crate) fn read_all(node: &Node, graph: &Graph, report: &mut Report<'_>) -> Vec<Self> {
        let nodes = list(node, report).unwrap_or_default();
        let mut lines: Vec<Self> = nodes.iter().filter_map(|node| Self::read(node, graph, report)).collect();
        lines.sort_by_key(|line| line.after);
        lines
    }

    fn read(node: &Node, graph: &Graph, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "what is done meanwhile", report)?;
        let after = fields.get("at").and_then(|node| read::span(node, report)).unwrap_or_default();
        let by = read::words(&mut fields, "by", report).unwrap_or_else(|| "someone".to_owned());
        let signal = fields.get("signal").and_then(|node| text(node, report));
        let approve = fields.get("approve").and_then(|node| text(node, report));
        let reject = fields.get("reject").and_then(|node| text(node, report));
        let cancel = fields.get("cancel").and_then(|node| flag(node, report));
        let answered = approve.or(reject).and_then(|task| asking(task, graph, report));
        let deed = match (signal, approve, reject, cancel) {
            (Some(name), None, None, None) => {
                check_signal(name, graph, report);
                let payload = fields.get("payload").map_or(Value::Null, Node::to_json);
                Some(Deed::Signal { name: name.text.to_owned(), payload })
            }
            (None, Some(_), None, None) => {
                let filled = fields.get("fields").map(|node| read::mapping(node, report)).unwrap_or_default();
                answered.map(|task| Deed::Approve { task, fields: filled })
            }
            (None, None, Some(_), None) => {
                let reason = read::words(&mut fields, "reason", report);
                answered.map(|task| Deed::Reject { task, reason })
            }
            (None, None, None, Some(true)) => {
                Some(Deed::Cancel { reason: read::words(&mut fields, "reason", report) })
            }
            _ => {
                let message = "one of `signal`, `approve`, `reject` or `cancel: true` must stand here";
                report.add(&node.at, message, None);
                None
            }
        };
        fields.finish(report);
        let line = Self { at: node.at.clone(), after, by, deed: deed? };
        line.check_answer(graph, report);
        Some(line)
    }

    /// What nobody would take as an answer is no answer here.
    fn check_answer(&self, graph: &Graph, report: &mut Report<'_>) {
        let (Deed::Approve { task, .. } | Deed::Reject { task, .. }) = &self.deed else { return };
        let spec = graph.spec(*task);
        let ask = kind(&spec.kind).and_then(|kind| config::read::<Approval>(kind, spec.config.clone()).ok());
        let Some(ask) = ask else { return };
        if !ask.allows(&self.by) {
            let message = format!("{} is not among those who may answer `{}`", self.by, spec.name);
            report.add(&self.at, message, Some("say who with `by`".to_owned()));
        }
        if let Deed::Approve { fields, .. } = &self.deed {
            ask.problems(fields).into_iter().for_each(|problem| report.add(&self.at, problem, None));
        }
    }

    /// What is done, in a few words.
    pub(crate) fn describe(&self, graph: &Graph) -> String {
        let name = |task: &TaskIndex| &graph.spec(*task).name;
        match &self.deed {
            Deed::Signal { name, .. } => format!("the signal `{name}`"),
            Deed::Approve { task, .. } => format!("the approval of `{}`", name(task)),
            Deed::Reject { task, .. } => format!("the rejection of `{}`", name(task)),
            Deed::Cancel { .. } => "the cancellation".to_owned(),
        }
    }
}

fn check_signal(name: Word<'_>, graph: &Graph, report: &mut Report<'_>) {
    if graph.waiting_for(name.text).next().is_none() {
        let waiting = graph.workflow().tasks.iter().filter(|spec| spec.kind == "wait_for_signal");
        let names = waiting.filter_map(|spec| spec.config["signal"].as_str());
        report.add(name.at, format!("no task waits for a signal `{}`", name.text), hint(name.text, names));
    }
}

/// The approval of that name.
fn asking(name: Word<'_>, graph: &Graph, report: &mut Report<'_>) -> Option<TaskIndex> {
    let approvals = |spec: &&TaskSpec| spec.kind == "approval";
    let found = graph.index_of(name.text).filter(|task| approvals(&graph.spec(*task)));
    if found.is_none() {
        let names = graph.workflow().tasks.iter().filter(approvals).map(|spec| spec.name.as_str());
        report.add(name.at, format!("there is no approval `{}`", name.text), hint(name.text, names));
    }
    found
}
