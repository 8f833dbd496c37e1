//! Triggers: events, webhooks, other workflows and sensors that start runs.

use std::collections::BTreeMap;

use model::{Completion, InputSpec, TaskKind, Trigger, TriggerOn};
use serde_json::{Map, Value};

use crate::config;
use crate::diagnostic::Report;
use crate::inputs;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::schema::{self, Extent};
use crate::suggest;
use crate::template::{self, Names};
use crate::types::TaskType;

/// What a trigger may wait for.
pub(crate) const FORMS: [&str; 5] = ["event", "webhook", "workflow", "workflows", "sensor"];
/// How runs of other workflows must have ended.
pub(crate) const STATES: [&str; 3] = ["succeeded", "failed", "finished"];
/// A day: nothing is held back longer.
pub(crate) const MAX_DEBOUNCE: u32 = 86_400;
/// No workflow has more triggers.
pub(crate) const MAX_TRIGGERS: usize = 100;

/// Reads `triggers` of the workflow of that name.
pub(crate) fn read(
    node: &Node,
    workflow: Option<&str>,
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Vec<Trigger> {
    let Some(entries) = read::list(node, report) else { return Vec::new() };
    if let Some(first_too_many) = entries.get(MAX_TRIGGERS) {
        let message = format!("there are {} triggers, more than the {MAX_TRIGGERS} allowed", entries.len());
        report.add(&first_too_many.at, message, None);
    }
    let mut taken = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries.iter().take(MAX_TRIGGERS) {
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
    let mut fields = Fields::of(node, "a trigger", report)?;
    let name = fields.require("name").and_then(|node| read::text(node, report));
    name.iter().for_each(|name| names::check(*name, &names::PLAIN, report));
    let forms = FORMS.map(|form| fields.get(form));
    let state = fields.get("state");
    let filter = fields.get("filter").and_then(|node| read::expression(node, report));
    let given = fields.get("inputs");
    let debounce = fields.get("debounce_seconds");
    let strange = fields.finish(report);
    let on = match forms {
        [Some(event), None, None, None, None] => read_event(event, report),
        [None, Some(webhook), None, None, None] => read_webhook(webhook, report),
        [None, None, Some(one), None, None] | [None, None, None, Some(one), None] => {
            read_workflows(one, state, workflow, report)
        }
        [None, None, None, None, Some(sensor)] => read_sensor(sensor, report),
        [None, None, None, None, None] if strange => None,
        _ => {
            let hint = Some("for several, write several triggers".to_owned());
            let message = format!("a trigger needs exactly one of {}", suggest::list(FORMS));
            report.add(&node.at, message, hint);
            None
        }
    };
    if let Some(state) = state.filter(|_| forms[2].or(forms[3]).is_none()) {
        let hint = Some("write `workflow: NAME`, or remove `state`".to_owned());
        report.add(&state.at, "only a trigger on other workflows has `state`", hint);
    }
    filter.iter().for_each(|word| template::check_expression(*word, Some(&Names::of_event()), report));
    let inputs = read_inputs(given, node, declared, report);
    let debounce_seconds = debounce.and_then(|node| read_debounce(node, on.as_ref(), report));
    let (name, filter) = (name?, filter.map(|word| word.text.to_owned()));
    Some((name, Trigger { name: name.text.to_owned(), on: on?, filter, inputs, debounce_seconds }))
}

/// `event: TYPE`, or with a source and several types.
fn read_event(node: &Node, report: &mut Report<'_>) -> Option<TriggerOn> {
    if let Data::Text(_) = &node.data {
        let word = read::text(node, report)?;
        return Some(TriggerOn::Event { types: vec![word.text.to_owned()], source: None });
    }
    let mut fields = Fields::of(node, "an event", report)?;
    let types = fields.require("type");
    let source = fields.get("source").and_then(|node| read::text(node, report));
    fields.finish(report);
    let types = read::each(types?).iter().filter_map(|node| read::text(node, report));
    let types: Vec<String> = types.map(|word| word.text.to_owned()).collect();
    if types.is_empty() {
        report.add(
            &node.at,
            "an event needs a type",
            Some("such as `type: com.example.order.placed`".to_owned()),
        );
    }
    Some(TriggerOn::Event { types, source: source.map(|word| word.text.to_owned()) })
}

/// `webhook: {secret: "{{ secrets.NAME }}"}`.
fn read_webhook(node: &Node, report: &mut Report<'_>) -> Option<TriggerOn> {
    let mut fields = Fields::of(node, "a webhook", report)?;
    let secret = fields.require("secret").and_then(|node| read::text(node, report));
    fields.finish(report);
    let word = secret?;
    let named = template::secrets_of(&Value::from(word.text)).into_iter().next();
    let bare = word.text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
    let plain = named.as_ref().filter(|name| {
        bare.is_some_and(|bare| bare == format!("secrets.{name}") || bare == format!("secrets['{name}']"))
    });
    if plain.is_none() {
        let hint = Some("write \"{{ secrets.NAME }}\"".to_owned());
        report.add(word.at, "a webhook's secret is referenced by name, never written into the file", hint);
    }
    Some(TriggerOn::Webhook { secret: plain?.clone() })
}

fn read_workflows(
    node: &Node,
    state: Option<&Node>,
    own: Option<&str>,
    report: &mut Report<'_>,
) -> Option<TriggerOn> {
    let words: Vec<Word<'_>> = read::each(node).iter().filter_map(|node| read::text(node, report)).collect();
    if words.is_empty() {
        report.add(&node.at, "name at least one workflow", None);
    }
    let mut workflows: Vec<String> = Vec::new();
    for word in words {
        names::check(word, &names::PLAIN, report);
        if Some(word.text) == own {
            report.add(word.at, "a workflow that triggers itself on completion never stops", None);
        }
        if workflows.iter().any(|known| known == word.text) {
            report.add(word.at, format!("`{}` is named twice", word.text), None);
        } else {
            workflows.push(word.text.to_owned());
        }
    }
    let state = match state {
        Some(node) => read::choice(node, &STATES, report)?,
        None => Completion::Succeeded,
    };
    Some(TriggerOn::Workflows { workflows, state })
}

fn read_sensor(node: &Node, report: &mut Report<'_>) -> Option<TriggerOn> {
    let sensor = TaskType::of(TaskKind::Sensor);
    let Data::Map(entries) = &node.data else {
        Fields::of(node, "a sensor", report);
        return None;
    };
    report.extend(schema::check(&sensor.schema, node, sensor.kind.name(), Extent::Whole));
    check_sensor(node, report);
    let only_of_tasks = [
        ("run", "a trigger follows on runs by `workflow: NAME`"),
        ("timeout_seconds", "a trigger looks for as long as it is there"),
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
    given: Option<&Node>,
    trigger: &Node,
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Map<String, Value> {
    let entries = given.map(|node| read::entries(node, "`inputs`", report)).unwrap_or_default();
    for (key, value) in entries {
        if inputs::names(declared).all(|name| name != key.name) {
            let hint = suggest::hint(&key.name, inputs::names(declared));
            report.add(&key.at, format!("there is no input `{}`", key.name), hint);
        }
        template::check(value, Some(&Names::of_event()), report);
    }
    let is_given = |input: &InputSpec| entries.iter().any(|(key, _)| key.name == input.name);
    for input in declared.iter().filter(|input| input.default.is_none() && !is_given(input)) {
        let message = format!("the input `{}` has no default, and the trigger gives none", input.name);
        let hint = format!(
            "add, for example, `inputs: {{{}: \"{{{{ event.data.{} }}}}\"}}`",
            input.name, input.name
        );
        report.add(&trigger.at, message, Some(hint));
    }
    entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()
}

fn read_debounce(node: &Node, on: Option<&TriggerOn>, report: &mut Report<'_>) -> Option<u32> {
    if matches!(on, Some(TriggerOn::Workflows { .. } | TriggerOn::Sensor { .. })) {
        let hint = Some("remove it: each logical date and each find starts one run".to_owned());
        report.add(&node.at, "only a trigger on events or a webhook has `debounce_seconds`", hint);
    }
    read::whole(node, 1..=MAX_DEBOUNCE, report)
}
