//! Callbacks: whom to notify when a run or a task succeeds, fails, is retried or misses its deadline.

use model::{Call, Callback, Occasion};
use serde_json::{Map, Value, json};

use crate::diagnostic::Report;
use crate::json_schema::or_template;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields};
use crate::schema::format::HTTP_URL;
use crate::shape::{self, Record, Shape, any, custom, defined, node, record, required, several};
use crate::template::{self, Names};

/// The field of callbacks that only a workflow has.
pub(crate) const DEADLINE: &str = "on_missed_deadline";
/// The ways to notify.
const TARGETS: [&str; 3] = ["webhook", "message", "workflow"];

record! {
    /// The callbacks that tasks and workflows have.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Callbacks<'n> as "callbacks" {
        /// Callbacks for a success.
        on_success: Vec<CallbackParts<'n>> = callbacks(Occasion::Success),
        /// Callbacks for a failure.
        on_failure: Vec<CallbackParts<'n>> = callbacks(Occasion::Failure),
        /// Callbacks for a retry.
        on_retry: Vec<CallbackParts<'n>> = callbacks(Occasion::Retry),
    }
}

impl<'n> Callbacks<'n> {
    /// The callbacks of all occasions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CallbackParts<'n>> {
        [&self.on_success, &self.on_failure, &self.on_retry].into_iter().flatten().flatten()
    }
}

record! {
    /// One entry of a list of callbacks.
    struct NotifyParts<'n> as "a callback" {
        /// Whom to notify: a webhook, a message or a workflow, or a list of them.
        notify: &'n Node = required(node(|| several(shape::record::<TargetParts<'_>>()).schema())),
    }
}

record! {
    /// One recipient of a notification.
    struct TargetParts<'n> as "a recipient" {
        /// A URL to send a POST request to, optionally with `headers` and a `body`.
        webhook: &'n Node = node(webhook_schema),
        /// A Pub/Sub topic to publish a message to.
        message: &'n Node = node(message_schema),
        /// A workflow to start a run of.
        workflow: &'n Node = node(workflow_schema),
    }
    where json!({"minProperties": 1, "maxProperties": 1})
}

record! {
    /// A webhook with headers and a body.
    struct WebhookParts<'n> as "a webhook" {
        /// The URL, `http://` or `https://`.
        url: &'n Node = required(node(url_schema)),
        /// The headers of the request.
        headers: &'n Node = node(headers_schema),
        /// The body to send instead of `event`. Templates may name `event`.
        body: &'n Node = any(),
    }
}

record! {
    /// A message with a body.
    struct MessageParts<'n> as "a message" {
        /// The topic's id, without its project.
        topic: &'n Node = required(node(topic_schema)),
        /// The body to send instead of `event`. Templates may name `event`.
        body: &'n Node = any(),
    }
}

record! {
    /// A workflow with inputs.
    struct StartParts<'n> as "a workflow to start" {
        /// The name of the workflow.
        name: &'n Node = required(node(name_schema)),
        /// The inputs of the run. Templates may name `event`.
        inputs: &'n Node = node(|| json!({"type": "object"})),
    }
}

fn url_schema() -> Value {
    or_template(json!({"type": "string", "pattern": "^https?://"}))
}

fn headers_schema() -> Value {
    json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
}

fn topic_schema() -> Value {
    or_template(json!({"type": "string", "pattern": "^[^/]+$"}))
}

fn name_schema() -> Value {
    or_template(shape::name(&names::PLAIN).schema())
}

fn webhook_schema() -> Value {
    json!({"anyOf": [url_schema(), WebhookParts::schema()]})
}

fn message_schema() -> Value {
    json!({"anyOf": [topic_schema(), MessageParts::schema()]})
}

fn workflow_schema() -> Value {
    json!({"anyOf": [name_schema(), StartParts::schema()]})
}

/// The JSON Schema of a list of callbacks, or of one.
pub(crate) fn schema() -> Value {
    several(shape::record::<NotifyParts<'_>>()).schema()
}

/// The callbacks for an occasion.
pub(crate) fn callbacks<'n>(on: Occasion) -> impl Shape<'n, Value = Vec<CallbackParts<'n>>> {
    defined("callbacks", custom(move |node, report| Some(read_list(node, on, report)), schema))
}

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

/// Refuses the fields of a deadline, which a task does not have.
pub(crate) fn refuse_deadline(fields: &mut Fields<'_>, report: &mut Report<'_>) {
    let hint = "put it beside the workflow's `name`; `timeout_seconds` limits what a task may take";
    for field in ["deadline_seconds", DEADLINE] {
        fields.refuse(field, "only a workflow has a deadline", hint, report);
    }
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
    let mut fields = Fields::of(node, NotifyParts::WHAT, report)?;
    let bare: Vec<&str> = TARGETS.into_iter().filter(|target| fields.peek(target).is_some()).collect();
    for target in &bare {
        let hint = format!("write {{notify: {{{target}: …}}}}");
        fields.refuse(target, "put the recipient under `notify`", &hint, report);
    }
    // The recipient is there, in the wrong place.
    if !bare.is_empty() && fields.peek("notify").is_none() {
        fields.refuse("notify", "", "", report);
    }
    let parts = NotifyParts::take(&mut fields, report);
    fields.finish(report);
    parts.notify
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
    let mut fields = Fields::of(node, TargetParts::WHAT, report)?;
    let parts = TargetParts::take(&mut fields, report);
    let has_unknown = fields.finish(report);
    match (parts.webhook, parts.message, parts.workflow) {
        (Some(webhook), None, None) => read_webhook(webhook, on, report),
        (None, Some(message), None) => read_message(message, on, report),
        (None, None, Some(workflow)) => read_workflow(workflow, on, report),
        (None, None, None) if has_unknown => None,
        _ => {
            let hint = Some("for several, write a list: notify: [{webhook: …}, {message: …}]".to_owned());
            let message = "expected exactly one of `webhook`, `message` and `workflow`";
            report.add(&node.at, message, hint);
            None
        }
    }
}

/// A mapping as a record, or a single value as its first field.
fn short<'n, T: Record<'n>>(
    node: &'n Node,
    alone: impl Fn(&'n Node) -> T,
    report: &mut Report<'_>,
) -> Option<T> {
    if matches!(node.data, Data::Map(_)) { T::read(node, report) } else { Some(alone(node)) }
}

fn read_webhook<'n>(node: &'n Node, on: Occasion, report: &mut Report<'_>) -> Option<CallbackParts<'n>> {
    let alone = |node| WebhookParts { url: Some(node), headers: None, body: None };
    let WebhookParts { url, headers, body } = short(node, alone, report)?;
    let word = read::text(url?, report)?;
    if !template::is_template(word.text)
        && let Some(problem) = HTTP_URL.problem(word.text)
    {
        report.add(word.at, problem.message, problem.hint);
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
    let alone = |node| MessageParts { topic: Some(node), body: None };
    let MessageParts { topic, body } = short(node, alone, report)?;
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
    let alone = |node| StartParts { name: Some(node), inputs: None };
    let StartParts { name, inputs } = short(node, alone, report)?;
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
