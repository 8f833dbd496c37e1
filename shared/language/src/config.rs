//! The settings of each task type, as they are after rendering.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{ErrorClass, Instant, TaskKind, instant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::duration::Duration;
use crate::node::{Node, Path};
use crate::schema::{self, Extent};
use crate::suggest::Budget;
use crate::types::TaskType;

mod engine;
mod process;
mod sensor;

pub use engine::*;
pub use process::{Bash, Process, Program, Python, PythonEnvironment};
pub(crate) use process::{BashFields, PythonFields};
pub use sensor::{FileSensor, HttpSensor, RunSensor, Sensor, SqlSensor, TimeSensor};
pub(crate) use sensor::{SensorFields, pacing};

/// Rendered settings that do not fit their task type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the config does not fit the task type `{kind}`: {}", problems.join("; "))]
pub struct ConfigError {
    /// The task type whose settings they should be.
    pub kind: TaskKind,
    /// Every problem, in words.
    pub problems: Vec<String>,
}

/// Reads rendered settings as a task of this type takes them.
pub fn read<T: DeserializeOwned>(kind: &TaskKind, rendered: Value) -> Result<T, ConfigError> {
    let mut root = Node::from_json(&rendered);
    root.locate(0, Path::default());
    let schema = &TaskType::of(kind).schema;
    let findings = schema::check(schema, &root, kind.name(), Extent::Rendered, &Budget::default());
    let mut problems: Vec<String> = findings.into_iter().map(|finding| finding.in_words()).collect();
    if problems.is_empty() {
        match serde_json::from_value(rendered) {
            Ok(config) => return Ok(config),
            Err(error) => problems.push(model::json_error::in_words(&error)),
        }
    }
    Err(ConfigError { kind: kind.clone(), problems })
}

/// `noop` has no settings.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noop {}

/// `switch` has no settings: its cases stand beside its type.
pub type Switch = Noop;

/// `fan_out` has no settings: its list and its task stand beside its type.
pub type FanOut = Noop;

/// `fan_in` has no settings: how it gathers stands beside its type.
pub type FanIn = Noop;

/// `echo` returns its settings, whatever they are.
pub type Echo = Value;

/// The settings of `fail`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The message of the error.
    #[serde(default = "Fail::default_message")]
    pub message: Text,
    /// The class of the error.
    #[serde(default = "Fail::default_class")]
    #[schemars(schema_with = "class_name")]
    pub class: ErrorClass,
}

impl Fail {
    fn default_message() -> Text {
        Text("failed on purpose".to_owned())
    }

    fn default_class() -> ErrorClass {
        ErrorClass::Transient
    }
}

fn class_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ErrorClass::ALL.map(ErrorClass::name)})
}

/// The settings of `flaky`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flaky {
    /// How often an attempt fails, from 0 to 1.
    #[serde(default = "Flaky::default_probability")]
    #[schemars(range(min = 0, max = 1))]
    pub probability: f64,
    /// The same seed fails the same attempts; without one, every run differs.
    #[serde(default)]
    pub seed: Option<u64>,
}

impl Flaky {
    fn default_probability() -> f64 {
        0.2
    }
}

/// Settings of `sleep`: how long, or until when.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sleep {
    /// How long, from the start of the attempt.
    Duration(Duration),
    /// Until this instant, RFC 3339.
    #[serde(deserialize_with = "instant::deserialize")]
    Until(#[schemars(with = "String", extend("format" = "date-time"))] Instant),
}

impl Sleep {
    /// When a sleep that began at `start` is over.
    pub fn ends(self, start: Instant) -> Instant {
        match self {
            Self::Duration(length) => start + length.to_std(),
            Self::Until(end) => end,
        }
    }
}

/// The settings of `http`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The method; default GET, or POST with a body.
    #[serde(default)]
    pub method: Option<Method>,
    /// The URL, `http://` or `https://`.
    #[schemars(extend("format" = "http-url"))]
    pub url: String,
    /// The headers of the request.
    #[serde(default)]
    pub headers: BTreeMap<String, Text>,
    /// The body: a text is sent unchanged, anything else as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The status codes that count as success; default 200 to 299.
    #[serde(default)]
    #[schemars(inner(range(min = 100, max = 599)))]
    pub expected_status: Vec<u16>,
    /// Authentication of the request.
    #[serde(default)]
    pub auth: Option<Auth>,
}

impl Http {
    /// The method to use: unless one is named, GET, or POST where there is a body.
    pub fn method(&self) -> Method {
        let default = if self.body.is_some() { Method::Post } else { Method::Get };
        self.method.unwrap_or(default)
    }

    /// Whether an answer with this status is a success.
    pub fn expects(&self, status: u16) -> bool {
        match self.expected_status.is_empty() {
            true => (200..300).contains(&status),
            false => self.expected_status.contains(&status),
        }
    }
}

/// A method of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
#[expect(missing_docs, reason = "they are the methods themselves")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
    Head,
}

impl Method {
    /// As it stands on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Head => "HEAD",
        }
    }
}

/// The credentials of an HTTP request.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Auth {
    /// A token after `Authorization: Bearer`.
    Bearer(String),
    /// A name and a password.
    Basic(Basic),
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Basic {
    /// The name of the user.
    pub username: String,
    /// The password of the user.
    pub password: String,
}

/// A text; numbers and booleans are taken as they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(Self(value.to_string())),
            _ => Err(D::Error::custom("expected a text, a number or a boolean")),
        }
    }
}

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}
