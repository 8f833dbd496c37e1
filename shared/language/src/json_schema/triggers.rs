//! Triggers of a workflow.

use serde_json::{Value, json};

use super::refer;
use super::values::{expression, fields, name, object, one_of, text, texts, whole};
use crate::names;
use crate::triggers::{FORMS, MAX_DEBOUNCE, MAX_TRIGGERS, STATES};

/// What stands after `triggers:`.
pub(super) fn triggers() -> Value {
    let mut trigger = object(
        fields([
            ("name", "The trigger's name, unique in the workflow.", name(&names::PLAIN)),
            ("event", "An event that starts a run: its type, or type and source.", event()),
            ("webhook", "A signed request that starts a run.", webhook()),
            (
                "workflow",
                "The workflow whose runs start a run of this one when they end.",
                several(name(&names::PLAIN)),
            ),
            (
                "workflows",
                "Workflows that must all have run for the same logical date.",
                several(name(&names::PLAIN)),
            ),
            ("sensor", "A source to poll; each find starts a run.", sensor()),
            ("state", "The required state of the other runs; default `succeeded`.", one_of(&STATES)),
            ("filter", "An expression over `event`; if it is false, no run starts.", expression()),
            ("inputs", "The inputs of the run. Templates may name `event`.", json!({"type": "object"})),
            (
                "debounce_seconds",
                "Of events that follow each other within this time, only the last starts a run.",
                whole(1..=MAX_DEBOUNCE),
            ),
        ]),
        &["name"],
    );
    trigger["oneOf"] = FORMS.iter().map(|form| json!({"required": [form]})).collect();
    json!({"type": "array", "items": trigger, "maxItems": MAX_TRIGGERS})
}

fn event() -> Value {
    let whole = fields([
        ("type", "The type, or a list of types.", several(text())),
        ("source", "The source; `*` matches any text.", text()),
    ]);
    json!({"anyOf": [text(), object(whole, &["type"])]})
}

fn webhook() -> Value {
    let secret = json!({"type": "string", "pattern": r"^\{\{.*secrets.*\}\}$", "examples": ["{{ secrets.PARTNER_KEY }}"]});
    object(fields([("secret", "The secret that requests are signed with.", secret)]), &["secret"])
}

fn sensor() -> Value {
    // A task's settings may be a template as a whole; these must be known before anything runs.
    let mut sensor = refer("sensor_config");
    sensor["type"] = "object".into();
    sensor
}

fn several(one: Value) -> Value {
    let mut list = texts();
    list["items"] = one.clone();
    list["minItems"] = 1.into();
    json!({"anyOf": [one, list]})
}
