//! Callbacks: whom to tell when a run or a task succeeds, fails, is tried again or misses its deadline.

use model::{Call, Callback, Occasion};
use serde_json::{Map, Value};

use crate::diagnostic::Report;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields};
use crate::template::{self, Names};

/// On what a task or a run can tell somebody.
pub(crate) const OF_TASK: [(&str, Occasion); 3] =
    [("on_success", Occasion::Success), ("on_failure", Occasion::Failure), ("on_retry", Occasion::Retry)];
/// On what only a run can.
pub(crate) const DEADLINE: &str = "on_missed_deadline";
/// The ways to tell somebody.
pub(crate) const TARGETS: [&str; 3] = ["webhook", "message", "workflow"];

/// One callback as written.
#[derive(Clone, Debug)]
pub(crate) struct CallbackParts<'n> {
    on: Occasion,
    call: Call,
    /// What may hold templates, and whether secrets are resolved there.
    templates: Vec<(&'n Node, bool)>,
}

impl CallbackParts<'_> {
    pub(crate) fn complete(&self) -> Callback {
        Callback { on: self.on, call: self.call.clone() }
    }

    /// Reports what is wrong with templates; while it is not known which names exist, only what cannot be read.
    pub(crate) fn check(&self, names: Option<&Names<'_>>, report: &mut Report<'_>) {
        for (node, secrets) in &self.templates {
            let names = names.map(|names| names.with_event().with_secrets(*secrets));
            template::check(node, names.as_ref(), report);
        }
    }
}

/// Reads the callbacks of a task.
pub(crate) fn read_of_task<'n>(fields: &mut Fields<'n>, report: &mut Report<'_>) -> Vec<CallbackParts<'n>> {
    let hint = "put it beside the workflow's `name`; `timeout_seconds` limits what a task may take";
    fields.refuse("deadline_seconds", "only a workflow has a deadline", hint, report);
    fields.refuse(DEADLINE, "only a workflow has a deadline", hint, report);
    read(fields, report)
}

/// Reads the callbacks of a workflow, which may have a deadline.
pub(crate) fn read_of_workflow<'n>(
    fields: &mut Fields<'n>,
    deadline: bool,
    report: &mut Report<'_>,
) -> Vec<CallbackParts<'n>> {
    let mut found = read(fields, report);
    if let Some(node) = fields.get(DEADLINE) {
        if !deadline {
            let hint = Some("add, for example, `deadline_seconds: 3600`".to_owned());
            report.add(&node.at, "there is no deadline that could be missed", hint);
        }
        found.extend(read_list(node, Occasion::MissedDeadline, report));
    }
    found
}

/// The callbacks of a reference, and those of the reusable task for what the reference says nothing about.
pub(crate) fn over<'n>(upper: Vec<CallbackParts<'n>>, lower: &[CallbackParts<'n>]) -> Vec<CallbackParts<'n>> {
    let kept = lower.iter().filter(|lower| upper.iter().all(|upper| upper.on != lower.on));
    kept.cloned().collect::<Vec<_>>().into_iter().chain(upper).collect()
}

fn read<'n>(fields: &mut Fields<'n>, report: &mut Report<'_>) -> Vec<CallbackParts<'n>> {
    let mut found = Vec::new();
    for (name, on) in OF_TASK {
        found.extend(fields.get(name).into_iter().flat_map(|node| read_list(node, on, report)));
    }
    found
}

fn read_list<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Vec<CallbackParts<'n>> {
    let entries = read::each(node).iter().filter_map(|entry| read_notify(entry, report));
    let targets: Vec<&Node> = entries.flat_map(read::each).collect();
    targets.into_iter().filter_map(|target| read_target(target, on, report)).collect()
}

/// What stands after `notify:`.
fn read_notify<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<&'n Node> {
    if let Data::Text(text) = &node.data {
        let hint = Some(format!("write {{notify: {}}}", as_target(text)));
        report.add(&node.at, "put the recipient under `notify`", hint);
        return None;
    }
    let mut fields = Fields::of(node, "a callback", report)?;
    let bare = TARGETS.into_iter().filter(|target| fields.has(target)).collect::<Vec<_>>();
    for target in &bare {
        let hint = format!("write {{notify: {{{target}: …}}}}");
        fields.refuse(target, "put the recipient under `notify`", &hint, report);
    }
    let notify = if bare.is_empty() { fields.require("notify") } else { fields.get("notify") };
    fields.finish(report);
    notify
}

fn as_target(text: &str) -> String {
    let kind = if text.contains("://") { "webhook" } else { "workflow" };
    format!("{{{kind}: {text:?}}}")
}

fn read_target<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Option<CallbackParts<'n>> {
    if let Data::Text(text) = &node.data {
        let hint = Some(format!("write {}", as_target(text)));
        report.add(&node.at, "this does not say how to notify", hint);
        return None;
    }
    let mut fields = Fields::of(node, "whom to tell", report)?;
    let targets = TARGETS.map(|name| fields.get(name));
    let strange = fields.finish(report);
    let given: Vec<&Node> = targets.into_iter().flatten().collect();
    match (given.len(), targets) {
        (1, [Some(webhook), _, _]) => read_webhook(webhook, on, report),
        (1, [_, Some(message), _]) => read_message(message, on, report),
        (1, [_, _, Some(workflow)]) => read_workflow(workflow, on, report),
        (0, _) if strange => None,
        _ => {
            let hint = Some("for several, write a list: notify: [{webhook: …}, {message: …}]".to_owned());
            let message = "expected exactly one of `webhook`, `message` and `workflow`";
            report.add(&node.at, message, hint);
            None
        }
    }
}

fn read_webhook<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Option<CallbackParts<'n>> {
    let [url, headers, body] = parts(node, "a webhook", ["url", "headers", "body"], report)?;
    let word = read::text(url?, report)?;
    if !template::is_template(word.text) && !read::is_url(word.text) {
        let hint = Some("begin it with `https://`".to_owned());
        report.add(word.at, format!("`{}` is not an HTTP URL", word.text), hint);
    }
    let call = Call::Webhook {
        url: word.text.to_owned(),
        headers: headers.map(|node| read_headers(node, report)).unwrap_or_default(),
        body: body.map(Node::to_json),
    };
    let templates = [url, headers, body].into_iter().flatten().map(|node| (node, true)).collect();
    Some(CallbackParts { on, call, templates })
}

fn read_headers(node: &Node, report: &mut Report<'_>) -> Map<String, Value> {
    let headers = read_map(node, "headers", report);
    let Data::Map(entries) = &node.data else { return headers };
    for (_, value) in entries {
        if !matches!(value.data, Data::Text(_) | Data::Number(_) | Data::Bool(_)) {
            report.add(&value.at, format!("expected a text, found {}", value.describe()), None);
        }
    }
    headers
}

fn read_message<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Option<CallbackParts<'n>> {
    let [topic, body] = parts(node, "a message", ["topic", "body"], report)?;
    let word = read::text(topic?, report)?;
    if let Some((_, id)) = word.text.rsplit_once('/').filter(|_| !template::is_template(word.text)) {
        let hint = Some(format!("write its id alone: `{id}`"));
        report.add(word.at, format!("`{}` is not a topic id", word.text), hint);
    }
    let call = Call::Message { topic: word.text.to_owned(), body: body.map(Node::to_json) };
    let templates = [topic, body].into_iter().flatten().map(|node| (node, false)).collect();
    Some(CallbackParts { on, call, templates })
}

fn read_workflow<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Option<CallbackParts<'n>> {
    let [name, inputs] = parts(node, "a workflow to start", ["name", "inputs"], report)?;
    let word = read::text(name?, report)?;
    if !template::is_template(word.text) {
        names::check(word, &names::PLAIN, report);
    }
    let call = Call::Workflow {
        workflow: word.text.to_owned(),
        inputs: inputs.map(|node| read_map(node, "inputs", report)).unwrap_or_default(),
    };
    let templates = [name, inputs].into_iter().flatten().map(|node| (node, false)).collect();
    Some(CallbackParts { on, call, templates })
}

/// The named parts of a target, of which the first is required; a text is that one alone.
fn parts<'n, const N: usize>(
    node: &'n Node,
    what: &str,
    names: [&'static str; N],
    report: &mut Report<'_>,
) -> Option<[Option<&'n Node>; N]> {
    if !matches!(node.data, Data::Map(_)) {
        let mut alone = [None; N];
        alone[0] = Some(node);
        return Some(alone);
    }
    let mut fields = Fields::of(node, what, report)?;
    let mut first = true;
    let found = names.map(|name| match std::mem::take(&mut first) {
        true => fields.require(name),
        false => fields.get(name),
    });
    fields.finish(report);
    Some(found)
}

fn read_map(node: &Node, what: &str, report: &mut Report<'_>) -> Map<String, Value> {
    match node.to_json() {
        Value::Object(entries) => entries,
        _ => {
            let message = format!("`{what}` must be a mapping, but this is {}", node.describe());
            report.add(&node.at, message, None);
            Map::new()
        }
    }
}
