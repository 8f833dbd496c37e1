//! What a schema allows of one value by itself: its type, its range, its format, the words allowed.

use model::ScriptPath;
use model::instant::{self, InvalidInstant};
use serde_json::Value;

use crate::config;
use crate::duration::Duration;
use crate::names;
use crate::node::{Data, Node};
use crate::read;
use crate::suggest::{self, Budget};
use crate::template;

/// What is wrong with a value, and how to put it right.
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Problem {
    fn of(message: String, hint: Option<String>) -> Option<Self> {
        Some(Self { message, hint })
    }
}

/// The first thing about the value itself that the schema does not allow.
pub(super) fn problem(schema: &Value, node: &Node, budget: &Budget) -> Option<Problem> {
    wrong_type(schema, node)
        .or_else(|| wrong_word(schema, node, budget))
        .or_else(|| out_of_range(schema, node))
        .or_else(|| wrong_format(schema, node))
}

fn wrong_type(schema: &Value, node: &Node) -> Option<Problem> {
    let wanted: Vec<&str> = match schema.get("type")? {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if wanted.iter().any(|name| is_of(name, node)) {
        return None;
    }
    let words: Vec<&str> = wanted.iter().filter(|name| **name != "null").map(|name| in_words(name)).collect();
    let hint = match &node.data {
        Data::Number(_) | Data::Bool(_) if wanted.contains(&"string") => {
            Some(format!("put it in quotes: \"{}\"", node.to_json()))
        }
        Data::Text(text) if template::is_template(text) && wanted.iter().any(|name| is_list(name)) => {
            Some("write its entries: one template cannot stand for all of them".to_owned())
        }
        Data::Text(text) if wanted.contains(&"array") => Some(format!("write [{text}]")),
        Data::Number(number) if wanted.contains(&"array") => Some(format!("write [{number}]")),
        _ => None,
    };
    Problem::of(format!("expected {}, found {}", words.join(" or "), node.describe()), hint)
}

fn is_list(name: &str) -> bool {
    matches!(name, "array" | "object")
}

fn is_of(name: &str, node: &Node) -> bool {
    match (name, &node.data) {
        ("null", Data::Null)
        | ("boolean", Data::Bool(_))
        | ("number", Data::Number(_))
        | ("string", Data::Text(_))
        | ("array", Data::List(_))
        | ("object", Data::Map(_)) => true,
        ("integer", Data::Number(number)) => !number.is_f64(),
        _ => false,
    }
}

fn in_words(name: &str) -> &str {
    match name {
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

fn wrong_word(schema: &Value, node: &Node, budget: &Budget) -> Option<Problem> {
    let allowed = schema.get("enum")?.as_array()?;
    let value = node.to_json();
    if allowed.contains(&value) {
        return None;
    }
    let words = || allowed.iter().filter_map(Value::as_str);
    let in_words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let listed: Vec<String> = allowed.iter().filter(|value| !value.is_null()).map(in_words).collect();
    let listed = suggest::list(listed.iter().map(String::as_str));
    let hint = value.as_str().and_then(|word| {
        let other_case = words().find(|candidate| candidate.eq_ignore_ascii_case(word));
        other_case.or_else(|| budget.nearest(word, words())).map(|near| format!("did you mean `{near}`?"))
    });
    Problem::of(format!("expected one of {listed}, found {}", node.describe()), hint)
}

fn out_of_range(schema: &Value, node: &Node) -> Option<Problem> {
    let Data::Number(number) = &node.data else { return None };
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, most) = (bound("minimum"), bound("maximum"));
    let value = number.as_f64()?;
    if least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most) {
        return None;
    }
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("of at least {least}"),
        (None, most) => format!("of at most {}", most.unwrap_or_default()),
    };
    Problem::of(format!("expected a number {range}, found {number}"), None)
}

/// Whether a setting must be known before anything runs, and so cannot be a template.
pub(crate) fn is_fixed(schema: &Value) -> bool {
    let format = schema.get("format").and_then(Value::as_str);
    matches!(
        format,
        Some(
            "signal-name"
                | "expression"
                | "statement"
                | "function"
                | "package"
                | "requirements-path"
                | "fixed"
        )
    )
}

fn wrong_name(name: &str, rule: &names::Rule) -> Option<Problem> {
    names::refusal(name, rule).map(|(message, hint)| Problem { message, hint })
}

fn wrong_format(schema: &Value, node: &Node) -> Option<Problem> {
    let Data::Text(text) = &node.data else { return None };
    match schema.get("format")?.as_str()? {
        "duration" => text.parse::<Duration>().err().and_then(|error| Problem::of(error.to_string(), None)),
        "date-time" => match instant::parse(text).err()? {
            InvalidInstant::Format(text) => {
                let hint = Some("such as `2026-01-31T18:00:00Z`".to_owned());
                Problem::of(format!("`{text}` is not an RFC 3339 timestamp"), hint)
            }
            year => Problem::of(year.to_string(), None),
        },
        "http-url" if !read::is_url(text) => {
            let hint = Some("begin it with `https://`".to_owned());
            Problem::of(format!("`{text}` is not an HTTP URL"), hint)
        }
        "signal-name" if template::is_template(text) => {
            let hint = "senders must know it: use a fixed name, and send variable data as the payload";
            Problem::of("a signal's name cannot be a template".to_owned(), Some(hint.to_owned()))
        }
        "signal-name" => wrong_name(text, &names::SIGNAL),
        "expression" if template::is_template(text) => {
            Problem::of("an expression is written without braces".to_owned(), None)
        }
        "statement" if template::is_template(text) => {
            let hint = "write `$1` where a value goes, and the value into `params`".to_owned();
            Problem::of("values are bound to a query, never pasted into it".to_owned(), Some(hint))
        }
        "package" | "requirements-path" if template::is_template(text) => {
            let hint = "packages are code: write each of them, or choose with a `switch` between tasks";
            Problem::of("packages cannot be named by a template".to_owned(), Some(hint.to_owned()))
        }
        "script-path" | "requirements-path" => {
            let hint = Some("put the script into that folder, and name it from there".to_owned());
            Problem::of(ScriptPath::new(text).err()?.to_string(), hint)
        }
        "function" if text.len() > config::MAX_FUNCTION => {
            let most = config::MAX_FUNCTION;
            Problem::of(
                format!("the name of a function has {} bytes, more than the {most} allowed", text.len()),
                None,
            )
        }
        "function" if !config::is_function(text) => {
            let hint =
                Some("such as `report:build`, for the function `build` in the file `report.py`".to_owned());
            Problem::of(format!("`{}` is not a function, as `module:function`", text.escape_debug()), hint)
        }
        "python-version" if !config::is_python_version(text) => {
            let hint = Some("such as `\"3.12\"`, in quotes".to_owned());
            Problem::of(format!("`{}` is not a version of Python", text.escape_debug()), hint)
        }
        "workflow-name" => wrong_name(text, &names::PLAIN),
        "field-name" => wrong_name(text, &names::FIELD),
        _ => None,
    }
}
