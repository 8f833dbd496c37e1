//! Triggers: events, webhooks, other workflows and sensors that start runs.

use std::collections::{BTreeMap, BTreeSet};

use model::{Completion, InputSpec, SecretName, TaskKind, Trigger, TriggerOn};
use serde_json::{Map, Value, json};

use crate::config;
use crate::diagnostic::Report;
use crate::inputs;
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::{self, Fields, Word};
use crate::schema::{self, Extent};
use crate::shape::{
    self, Given, Record, Shape, choice, custom, entries, exactly_one, expression, given, one_or_more, record,
    refer, required, text, whole,
};
use crate::suggest;
use crate::template::{self, Names};
use crate::types::TaskType;

const FORMS: [&str; 5] = ["event", "webhook", "workflow", "workflows", "sensor"];
/// How runs of other workflows must have ended.
const STATES: [&str; 3] = ["succeeded", "failed", "finished"];
/// A day: events are held back no longer.
const MAX_DEBOUNCE: u32 = 86_400;
/// The maximum number of triggers of a workflow.
const MAX_TRIGGERS: usize = 100;

record! {
    /// A trigger as written.
    struct TriggerParts<'n> as "a trigger" {
        /// The trigger's name, unique in the workflow.
        name: Word<'n> = required(shape::name(&names::PLAIN)),
        /// An event that starts a run: its type, or type and source.
        event: Given<'n, TriggerOn> =
            given(custom(read_event, || json!({"anyOf": [text().schema(), EventParts::schema()]}))),
        /// A signed request that starts a run.
        webhook: Given<'n, WebhookParts> = given(shape::record()),
        /// The workflow whose runs start a run of this one when they end.
        workflow: Given<'n, Vec<Word<'n>>> = given(one_or_more(shape::name(&names::PLAIN))),
        /// Workflows that must all have run for the same logical date.
        workflows: Given<'n, Vec<Word<'n>>> = given(one_or_more(shape::name(&names::PLAIN))),
        /// A source to poll; each find starts a run.
        sensor: Given<'n, TriggerOn> = given(custom(read_sensor, sensor_schema)),
        /// The required state of the other runs; default `succeeded`.
        state: Given<'n, Completion> = given(choice(&STATES)),
        /// An expression over `event`; if it is false, no run starts.
        filter: Word<'n> = expression(),
        /// The inputs of the run. Templates may name `event`.
        inputs: &'n [(Key, Node)] = entries("`inputs`"),
        /// Of events that follow each other within this time, only the last starts a run.
        debounce_seconds: Given<'n, u32> = given(whole(1..=MAX_DEBOUNCE)),
    }
    where exactly_one(&FORMS)
}

record! {
    /// An event by type and source.
    struct EventParts<'n> as "an event" {
        /// The type, or a list of types.
        r#type: Vec<Word<'n>> = required(one_or_more(text())),
        /// The source; `*` matches any text.
        source: Word<'n> = text(),
    }
}

record! {
    /// A webhook that starts runs.
    struct WebhookParts as "a webhook" {
        /// The secret that requests are signed with.
        secret: SecretName = required(custom(read_secret, secret_schema)),
    }
}

/// The JSON Schema of `triggers`.
pub(crate) fn schema() -> Value {
    json!({"type": "array", "items": TriggerParts::schema(), "maxItems": MAX_TRIGGERS})
}

/// Reads `triggers` of the workflow of that name.
pub(crate) fn read(
    node: &Node,
    workflow: Option<&str>,
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Vec<Trigger> {
    let Some(listed) = read::list(node, report) else { return Vec::new() };
    if let Some(first_too_many) = listed.get(MAX_TRIGGERS) {
        let message = format!("there are {} triggers, more than the {MAX_TRIGGERS} allowed", listed.len());
        report.add(&first_too_many.at, message, None);
    }
    let mut taken = BTreeMap::new();
    let mut found = Vec::new();
    for entry in listed.iter().take(MAX_TRIGGERS) {
        let Some((name, trigger)) = read_one(entry, workflow, declared, report) else { continue };
        if let Some(line) = taken.insert(name.text, name.at.line) {
            let hint = Some("rename one of the two".to_owned());
            report.add(
                name.at,
                format!("the trigger `{}` is already defined in line {line}", name.text),
                hint,
            );
        }
        found.push(trigger);
    }
    found
}

fn read_one<'n>(
    node: &'n Node,
    workflow: Option<&str>,
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Option<(Word<'n>, Trigger)> {
    let mut fields = Fields::of(node, TriggerParts::WHAT, report)?;
    let parts = TriggerParts::take(&mut fields, report);
    let has_unknown = fields.finish(report);
    let of_workflows = parts.workflow.as_ref().or(parts.workflows.as_ref());
    let forms = [
        parts.event.is_some(),
        parts.webhook.is_some(),
        parts.workflow.is_some(),
        parts.workflows.is_some(),
        parts.sensor.is_some(),
    ];
    let on = match forms.into_iter().filter(|given| *given).count() {
        1 => match of_workflows {
            Some(given) => read_workflows(given, parts.state, workflow, report),
            None => {
                let secret = parts.webhook.and_then(|webhook| webhook.value?.secret);
                let webhook = secret.map(|secret| TriggerOn::Webhook { secret: secret.into() });
                webhook.or_else(|| parts.event.or(parts.sensor)?.value)
            }
        },
        0 if has_unknown => None,
        _ => {
            let hint = Some("for several, write several triggers".to_owned());
            let message = format!("a trigger needs exactly one of {}", suggest::list(FORMS));
            report.add(&node.at, message, hint);
            None
        }
    };
    if let Some(state) = parts.state.filter(|_| of_workflows.is_none()) {
        let hint = Some("write `workflow: NAME`, or remove `state`".to_owned());
        report.add(state.at, "only a trigger on other workflows has `state`", hint);
    }
    if let Some(debounce) = parts.debounce_seconds
        && matches!(on, Some(TriggerOn::Workflows { .. } | TriggerOn::Sensor { .. }))
    {
        let hint = Some("remove it: each logical date and each find starts one run".to_owned());
        report.add(debounce.at, "only a trigger on events or a webhook has `debounce_seconds`", hint);
    }
    parts.filter.iter().for_each(|word| template::check_expression(*word, Some(&Names::of_event()), report));
    let inputs = read_inputs(parts.inputs.unwrap_or_default(), node, declared, report);
    let name = parts.name?;
    let trigger = Trigger {
        name: name.text.to_owned(),
        on: on?,
        filter: parts.filter.map(|word| word.text.to_owned()),
        inputs,
        debounce_seconds: parts.debounce_seconds.and_then(|debounce| debounce.value),
    };
    Some((name, trigger))
}

/// `event: TYPE`, or with a source and several types.
fn read_event(node: &Node, report: &mut Report<'_>) -> Option<TriggerOn> {
    if let Data::Text(_) = &node.data {
        let word = read::text(node, report)?;
        return Some(TriggerOn::Event { types: vec![word.text.to_owned()], source: None });
    }
    let parts = EventParts::read(node, report)?;
    let types = parts.r#type?;
    if types.is_empty() {
        let hint = Some("such as `type: com.example.order.placed`".to_owned());
        report.add(&node.at, "an event needs a type", hint);
    }
    let types = types.into_iter().map(|word| word.text.to_owned()).collect();
    Some(TriggerOn::Event { types, source: parts.source.map(|word| word.text.to_owned()) })
}

/// `{{ secrets.NAME }}`: the name of a secret, never the secret itself.
fn read_secret(node: &Node, report: &mut Report<'_>) -> Option<SecretName> {
    let word = read::text(node, report)?;
    let inner = word.text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
    let quoted = |name: &'_ str| ["'", "\""].map(|quote| format!("secrets[{quote}{name}{quote}]"));
    let named = template::secrets_of(&Value::from(word.text)).into_iter().next();
    let is_plain = |name: &String| {
        inner.is_some_and(|inner| {
            inner == format!("secrets.{name}") || quoted(name).iter().any(|form| form == inner)
        })
    };
    let Some(name) = named.filter(is_plain) else {
        let hint = Some("write \"{{ secrets.NAME }}\"".to_owned());
        report.add(word.at, "a webhook's secret is referenced by name, never written into the file", hint);
        return None;
    };
    let invalid = |error: model::InvalidSecretName| report.add(word.at, error.to_string(), None);
    SecretName::new(&name).map_err(invalid).ok()
}

fn secret_schema() -> Value {
    let name = SecretName::PATTERN;
    let pattern = format!(r#"^\{{\{{\s*secrets(\.{name}|\[['"]{name}['"]\])\s*\}}\}}$"#);
    json!({"type": "string", "pattern": pattern, "examples": ["{{ secrets.PARTNER_KEY }}"]})
}

fn read_workflows(
    given: &Given<'_, Vec<Word<'_>>>,
    state: Option<Given<'_, Completion>>,
    own: Option<&str>,
    report: &mut Report<'_>,
) -> Option<TriggerOn> {
    let words = given.value.as_ref()?;
    if words.is_empty() {
        report.add(given.at, "name at least one workflow", None);
    }
    let mut workflows: Vec<String> = Vec::new();
    let mut taken = BTreeSet::new();
    for word in words {
        if Some(word.text) == own {
            report.add(word.at, "a workflow that triggers itself on completion never stops", None);
        }
        match taken.insert(word.text) {
            true => workflows.push(word.text.to_owned()),
            false => report.add(word.at, format!("`{}` is named twice", word.text), None),
        }
    }
    let state = state.map_or(Some(Completion::Succeeded), |state| state.value);
    Some(TriggerOn::Workflows { workflows, state: state? })
}

/// A task's sensor may be a template as a whole; a trigger's must be known before anything runs.
fn sensor_schema() -> Value {
    let mut sensor = refer("sensor_config");
    sensor["type"] = "object".into();
    sensor
}

fn read_sensor(node: &Node, report: &mut Report<'_>) -> Option<TriggerOn> {
    let sensor = TaskType::of(&TaskKind::Sensor);
    let entries = read::entries(node, "a sensor", report)?;
    let findings = schema::check(&sensor.schema, node, sensor.kind.name(), Extent::Whole, &report.budget);
    report.extend(findings);
    check_sensor(node, report);
    let only_of_tasks = [
        ("run", "to follow other runs, write `workflow: NAME`"),
        ("timeout_seconds", "a trigger polls for as long as it exists"),
        ("soft_fail", "a trigger has nothing that could be skipped"),
    ];
    for (name, hint) in only_of_tasks {
        let found = entries.iter().find(|(key, _)| key.name == name);
        found.iter().for_each(|(key, _)| {
            report.add(&key.at, format!("only a task's sensor has `{name}`"), Some(hint.to_owned()));
        });
    }
    template::check(node, Some(&Names::of_nothing().with_secrets(true)), report);
    let config = node.to_json();
    Some(TriggerOn::Sensor { pacing: config::pacing(&config), config })
}

/// Reports what is wrong with a sensor's settings that their shape does not show.
pub(crate) fn check_sensor(config: &Node, report: &mut Report<'_>) {
    let field = |node: &'_ Node, name: &str| match &node.data {
        Data::Map(entries) => entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node.clone()),
        _ => None,
    };
    let condition = field(config, "http").and_then(|http| field(&http, "condition"));
    if let Some(Node { data: Data::Text(text), at }) = &condition
        && !template::is_template(text)
    {
        template::check_expression(Word { text, at }, None, report);
    }
}

fn read_inputs(
    entries: &[(Key, Node)],
    trigger: &Node,
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Map<String, Value> {
    let known: BTreeSet<&str> = inputs::names(declared).collect();
    let given: BTreeSet<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
    for (key, value) in entries {
        if !known.contains(key.name.as_str()) {
            let hint = report.suggest(&key.name, inputs::names(declared));
            report.add(&key.at, format!("there is no input `{}`", key.name), hint);
        }
        template::check(value, Some(&Names::of_event()), report);
    }
    let is_needed = |input: &&InputSpec| input.default.is_none() && !given.contains(input.name.as_str());
    for InputSpec { name, .. } in declared.iter().filter(is_needed) {
        let message = format!("the input `{name}` has no default, and the trigger gives none");
        let hint = format!("add, for example, `inputs: {{{name}: \"{{{{ event.data.{name} }}}}\"}}`");
        report.add(&trigger.at, message, Some(hint));
    }
    entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()
}
