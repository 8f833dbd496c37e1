//! What attempts come to, since nothing is carried out.

use chrono::TimeDelta;
use language::document::{Data, Fields, Node, Place, Report, choice, entries, text};
use language::kinds::kind;
use model::message::TaskResult;
use model::{ErrorClass, Failure, TaskSpec, Workflow};
use serde_json::Value;

use crate::read;

/// What one attempt comes to.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    pub(crate) at: Place,
    pub(crate) takes: TimeDelta,
    pub(crate) result: TaskResult,
}

/// The stubs of one task, by attempt; the last holds for all further ones.
#[derive(Clone, Debug)]
pub(crate) struct Stubs {
    pub(crate) task: String,
    pub(crate) at: Place,
    pub(crate) attempts: Vec<Stub>,
}

impl Stubs {
    /// Reads the stubs of all tasks.
    pub(crate) fn read(node: &Node, workflow: &Workflow, report: &mut Report<'_>) -> Vec<Self> {
        let tasks = entries(node, "`tasks`", report);
        let mut stubs = Vec::new();
        for (key, node) in tasks {
            if let Some(spec) = read::task(&key.name, &key.at, workflow, report) {
                refuse_inside(spec, &key.at, report);
            }
            let attempts = read::one_or_more(node);
            if attempts.is_empty() {
                report.add(&node.at, "a list of attempts needs at least one", None);
            }
            let attempts = attempts.iter().filter_map(|attempt| Stub::read(attempt, report)).collect();
            stubs.push(Self { task: key.name.clone(), at: key.at.clone(), attempts });
        }
        stubs
    }

    /// The stub of one attempt at a task: its own, or for a fan-out's child that of all its children.
    pub(crate) fn find<'s>(all: &'s [Self], task: &str, attempt: u32) -> Option<&'s Stub> {
        let of = |name: &str| all.iter().find(|stubs| stubs.task == name);
        let stubs = of(task).or_else(|| read::parent(task).and_then(of))?;
        stubs.attempts.get(attempt.saturating_sub(1) as usize).or(stubs.attempts.last())
    }
}

impl Stub {
    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "a stub", report)?;
        let takes = fields.get("takes").and_then(|node| read::span(node, report)).unwrap_or_default();
        let output = fields.get("output");
        let fail = fields.get("fail");
        fields.finish(report);
        if let (Some(_), Some(fail)) = (output, fail) {
            let hint = "write a list for one attempt after the other".to_owned();
            report.add(&fail.at, "an attempt has an `output` or it fails, not both", Some(hint));
        }
        let result = match fail {
            Some(fail) => TaskResult::Failed(failure(fail, report)?),
            None => TaskResult::Succeeded(output.map_or(Value::Null, Node::to_json)),
        };
        Some(Self { at: node.at.clone(), takes, result })
    }
}

/// `"connection reset"`, which may pass by itself, or `{message: …, class: permanent}`.
fn failure(node: &Node, report: &mut Report<'_>) -> Option<Failure> {
    if !matches!(node.data, Data::Map(_)) {
        return text(node, report).map(|word| Failure::transient(word.text));
    }
    let mut fields = Fields::of(node, "a failure", report)?;
    let message = fields.require("message").and_then(|node| text(node, report));
    let classes = ErrorClass::ALL.map(ErrorClass::name);
    let class = fields.get("class").map(|node| choice::<ErrorClass>(node, &classes, report));
    fields.finish(report);
    Some(Failure::new(class.unwrap_or(Some(ErrorClass::Transient))?, message?.text))
}

/// What the engine settles itself comes to what it comes to.
fn refuse_inside(spec: &TaskSpec, at: &Place, report: &mut Report<'_>) {
    if spec.fan_out.is_some() || !kind(&spec.kind).is_some_and(|kind| kind.inside) {
        return;
    }
    let hint = match spec.kind.as_str() {
        "wait_for_signal" | "approval" => "say under `meanwhile` what comes",
        _ => "stub the tasks before it, and expect what it makes of them",
    };
    let message = format!("`{}` takes no stub: a `{}` is settled by the engine itself", spec.name, spec.kind);
    report.add(at, message, Some(hint.to_owned()));
}

#[cfg(test)]
mod tests {
    use model::FanOut;

    use super::*;

    fn stubs(text: &str) -> Result<Vec<Stubs>, String> {
        let child = FanOut {
            for_each: String::new(),
            max_parallel: None,
            tolerated_failures: Default::default(),
            task: Box::default(),
        };
        let spec = |name: &str, fan_out| TaskSpec {
            name: name.into(),
            kind: "bash".into(),
            fan_out,
            ..TaskSpec::default()
        };
        let tasks = vec![spec("split", Some(child)), spec("plain", None)];
        let workflow = Workflow { name: "flow".into(), tasks, ..Workflow::default() };
        let mut report = Report::on("test.yaml", text);
        let root = language::document::parse(&mut report).unwrap();
        let stubs = Stubs::read(&root, &workflow, &mut report);
        report.finish().first().map_or(Ok(stubs), |problem| Err(problem.to_string()))
    }

    #[test]
    fn a_child_has_its_own_stub_or_that_of_all_children() {
        let stubs = stubs("{split: {output: all}, split__3: {output: three}}").unwrap();
        let output = |task: &str| Stubs::find(&stubs, task, 1).map(|stub| stub.result.clone());
        let text = |text: &str| Some(TaskResult::Succeeded(text.into()));
        assert_eq!(
            [output("split__3"), output("split__30"), output("other__3")],
            [text("three"), text("all"), None]
        );
    }

    #[test]
    fn only_a_fan_out_has_children() {
        for name in ["plain__0", "split__", "split__x", "split_0"] {
            assert!(stubs(&format!("{{{name}: {{}}}}")).is_err(), "{name}");
        }
    }
}
