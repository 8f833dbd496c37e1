//! The parts of a workflow beside its tasks, and those that tasks share.

use chrono_tz::TZ_VARIANTS;
use model::{InputType, Occasion, RetryPolicy};
use serde_json::{Map, Value, json};

use super::refer;
use super::values::{
    described, expression, fields, name, number, object, one_of, or_template, task_names, template, text,
    url, whole,
};
use crate::callbacks::{DEADLINE, OF_TASK, TARGETS};
use crate::concurrency::{MAX_RUNS, POLICIES};
use crate::inputs::TYPES;
use crate::names;
use crate::retry::{BACKOFFS, MAX_DELAY_SECONDS, MAX_RETRIES};
use crate::schedule::{CATCHUPS, MAX_CAP, MAX_PERIOD_SECONDS, MAX_SCHEDULES};

pub(super) fn inputs() -> Value {
    json!({"type": "object", "propertyNames": name(&names::INPUT), "additionalProperties": refer("input")})
}

pub(super) fn input() -> Value {
    let mut input = object(
        fields([
            ("type", "The type.", one_of(&TYPES)),
            ("description", "For people.", text()),
            ("default", "The default; without one, the input is required.", json!({})),
            ("enum", "The values allowed.", json!({"type": "array"})),
        ]),
        &["type"],
    );
    let of_type = |kind: &&str| {
        // A template may give it too.
        let value = or_template(plain_value(kind));
        json!({
            "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
            "then": {"properties": {"default": value, "enum": {"items": value}}},
        })
    };
    input["allOf"] = TYPES.iter().map(of_type).collect();
    input
}

/// The values of that type.
pub(super) fn plain_value(kind: &str) -> Value {
    let Ok(kind) = serde_json::from_value(kind.into()) else { return Value::Bool(true) };
    match kind {
        InputType::String => json!({"type": "string"}),
        InputType::Integer => json!({"type": "integer"}),
        InputType::Number => json!({"type": "number"}),
        InputType::Boolean => json!({"type": "boolean"}),
        InputType::Date => json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}),
        InputType::Datetime => json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]"}),
        InputType::List => json!({"type": "array"}),
        InputType::Object => json!({"type": "object"}),
    }
}

/// One schedule, or several with names.
pub(super) fn schedule() -> Value {
    let one = one_schedule();
    let named = json!({"allOf": [one, {"required": ["name"]}]});
    json!({"anyOf": [
        one,
        {"type": "array", "maxItems": 1, "items": one},
        {"type": "array", "minItems": 2, "maxItems": MAX_SCHEDULES, "items": named},
    ]})
}

fn one_schedule() -> Value {
    let zones: Vec<&str> = TZ_VARIANTS.iter().map(|zone| zone.name()).collect();
    let catchup: Vec<Value> =
        [true, false].map(Value::from).into_iter().chain(CATCHUPS.map(Value::from)).collect();
    let cron = json!({
        "type": "string",
        "pattern": r"^\s*(@[A-Za-z]+|\S+(\s+\S+){4,5})\s*$",
        "examples": ["0 18 * * 1-5", "@daily", "*/15 * * * *", "0 6 L * *"],
    });
    let mut schedule = object(
        fields([
            (
                "name",
                "The name, if there are several: lower-case letters, digits and `-`.",
                name(&names::PLAIN),
            ),
            ("cron", "Minute, hour, day of month, month, day of week; or `@daily` and the like.", cron),
            ("every", "The interval in real time, counted from 1970-01-01 UTC.", every()),
            ("at", "The only instant, in local time of its time zone.", text()),
            ("timezone", "The time zone; default UTC.", one_of(&zones)),
            ("inputs", "The inputs of the runs. Templates may name `run`.", json!({"type": "object"})),
            (
                "catchup",
                "Which missed instants get a run: `all` (or `true`), the `latest`, or `none` (or `false`; the default).",
                json!({"enum": catchup}),
            ),
            (
                "cap",
                "The maximum number of catch-up runs created at once; default 100. The rest follow a minute later.",
                whole(1..=MAX_CAP),
            ),
            ("max_active_runs", "The maximum number of active runs; further ones wait.", max_runs()),
            (
                "overlap",
                "What happens to a run beyond the limit: it waits (`queue`), cancels earlier ones \
                 (`cancel_previous`) or is not created (`skip`).",
                one_of(&POLICIES),
            ),
            ("paused", "Whether the schedule is paused.", json!({"type": "boolean"})),
        ]),
        &[],
    );
    schedule["oneOf"] = json!([{"required": ["cron"]}, {"required": ["every"]}, {"required": ["at"]}]);
    schedule
}

fn every() -> Value {
    let text = r"^\s*([0-9.]+[dhms])+\s*$|^\s*\+?[0-9.]+([eE]\+?[0-9]+)?\s*$";
    json!({
        "anyOf": [{"type": "string", "pattern": text}, {"type": "integer", "minimum": 1, "maximum": MAX_PERIOD_SECONDS}],
        "examples": ["15m", "1h30m", "1d"],
    })
}

pub(super) fn max_runs() -> Value {
    whole(1..=MAX_RUNS)
}

pub(super) fn concurrency() -> Value {
    object(
        fields([
            (
                "key",
                "Runs with the same key are counted together, such as `{{ inputs.customer }}`.",
                template(),
            ),
            ("limit", "The maximum number of active runs; default 1.", max_runs()),
            (
                "policy",
                "What happens to a run beyond the limit: it waits (`queue`), cancels earlier ones \
                 (`cancel_previous`) or is not created (`skip`).",
                one_of(&POLICIES),
            ),
        ]),
        &[],
    )
}

pub(super) fn retry_policy() -> Value {
    let usual = RetryPolicy::default();
    let delay = |seconds: f64| {
        let mut delay = number(0.0..=MAX_DELAY_SECONDS);
        delay["default"] = seconds.into();
        delay
    };
    object(
        fields([
            ("max_retries", "Attempts after the first; default 0.", whole(0..=MAX_RETRIES)),
            ("backoff", "How delays grow from one retry to the next.", one_of(&BACKOFFS)),
            (
                "initial_delay_seconds",
                "The delay before the first retry.",
                delay(usual.initial_delay_seconds),
            ),
            ("max_delay_seconds", "The maximum delay.", delay(usual.max_delay_seconds)),
            ("jitter", "The random variation of delays: 0.1 is ten percent.", number(0.0..=1.0)),
        ]),
        &[],
    )
}

pub(super) fn depends_on() -> Value {
    let mut any = task_names();
    any["minItems"] = 1.into();
    let forms = fields([
        ("all_of", "All of these, by the `trigger_rule`.", task_names()),
        ("any_of", "At least one of these succeeded, and the others have ended.", any),
    ]);
    let mut mapping = object(forms, &[]);
    mapping["maxProperties"] = 1.into();
    json!({"anyOf": [task_names(), mapping]})
}

/// The cases of a switch.
pub(super) fn cases() -> Value {
    let mut case = object(
        fields([
            (
                "when",
                "An expression, such as `inputs.n > 10`. The first case that holds is taken.",
                expression(),
            ),
            ("default", "Taken if no other case holds; must be the last case.", json!({"const": true})),
            ("next", "The tasks to run; they wait for the switch implicitly.", task_names()),
        ]),
        &["next"],
    );
    case["oneOf"] = json!([{"required": ["when"]}, {"required": ["default"]}]);
    json!({"type": "array", "items": case, "minItems": 1})
}

/// `on_success` and its like; only a workflow has a deadline to miss.
pub(super) fn callbacks(of_workflow: bool) -> Map<String, Value> {
    let own = of_workflow.then_some((DEADLINE, Occasion::MissedDeadline));
    let each = OF_TASK.into_iter().chain(own).map(|(name, occasion)| {
        let says = match occasion {
            Occasion::Success => "Callbacks for a success.",
            Occasion::Failure => "Callbacks for a failure.",
            Occasion::Retry => "Callbacks for a retry.",
            Occasion::MissedDeadline => "Callbacks for a run that takes longer than `deadline_seconds`.",
        };
        (name.to_owned(), described(says, refer("callbacks")))
    });
    each.collect()
}

/// What stands after `on_failure:`, one callback or several.
pub(super) fn callback_list() -> Value {
    let target = TARGETS.map(|name| match name {
        "webhook" => {
            (name, "A URL to send a POST request to, optionally with `headers` and a `body`.", webhook())
        }
        "message" => (name, "A Pub/Sub topic to publish a message to.", message()),
        _ => (name, "A workflow to start a run of.", workflow()),
    });
    let mut target = object(fields(target), &[]);
    target["minProperties"] = 1.into();
    target["maxProperties"] = 1.into();
    let notify =
        ("notify", "Whom to notify: a webhook, a message or a workflow, or a list of them.", several(target));
    several(object(fields([notify]), &["notify"]))
}

fn several(one: Value) -> Value {
    json!({"anyOf": [one, {"type": "array", "items": one}]})
}

fn webhook() -> Value {
    let target = or_template(url());
    let headers =
        json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}});
    let whole = fields([
        ("url", "The URL, `http://` or `https://`.", target.clone()),
        ("headers", "Headers to send.", headers),
        ("body", "The body to send instead of `event`. Templates may name `event`.", json!({})),
    ]);
    json!({"anyOf": [target, object(whole, &["url"])]})
}

fn message() -> Value {
    let topic = or_template(json!({"type": "string", "pattern": "^[^/]+$"}));
    let whole = fields([
        ("topic", "The topic's id, without its project.", topic.clone()),
        ("body", "The body to send instead of `event`. Templates may name `event`.", json!({})),
    ]);
    json!({"anyOf": [topic, object(whole, &["topic"])]})
}

fn workflow() -> Value {
    let workflow = or_template(name(&names::PLAIN));
    let whole = fields([
        ("name", "The workflow's name.", workflow.clone()),
        ("inputs", "The inputs of the run. Templates may name `event`.", json!({"type": "object"})),
    ]);
    json!({"anyOf": [workflow, object(whole, &["name"])]})
}
