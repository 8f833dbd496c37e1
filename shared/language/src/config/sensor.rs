//! The settings of sensors: what to poll, and how often.

use model::{Instant, Pacing, instant};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Http;

/// The default time between two polls.
const DEFAULT_INTERVAL: u32 = 60;
/// The default maximum time between two polls.
const DEFAULT_MAX_INTERVAL: u32 = 3_600;
/// The default number of failed polls in a row after which a trigger pauses.
const DEFAULT_MAX_FAILURES: u32 = 10;
/// The default number of runs within an hour after which a trigger pauses.
const DEFAULT_MAX_EVENTS: u32 = 600;

/// The source that a sensor polls: exactly one of these.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "SensorFields")]
pub enum Sensor {
    /// Files or objects that exist.
    File(FileSensor),
    /// Rows that a query returns.
    Sql(SqlSensor),
    /// A response that meets a condition.
    Http(Box<HttpSensor>),
    /// An instant that passes.
    Time(TimeSensor),
    /// The end of another run.
    Run(RunSensor),
}

/// Looks for files in a local folder, or for objects in a bucket of Google Cloud Storage.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FileSensor {
    /// A path, or `gs://BUCKET/OBJECT`. In the last part, `*` matches any text.
    pub path: String,
    /// A task only accepts files changed after this instant. A trigger starts again from here when this changes.
    #[serde(default, deserialize_with = "instant::deserialize_option")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub changed_since: Option<Instant>,
    /// Whether only changes count: since the task started, or since the first poll of the trigger.
    #[serde(default)]
    pub changed: bool,
}

/// Asks a Postgres database for rows.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SqlSensor {
    /// The address of the database; a secret, such as `{{ secrets.WAREHOUSE }}`.
    pub url: String,
    /// The query. It is not a template: values are bound to `$1` and so on.
    #[schemars(extend("format" = "statement"))]
    pub query: String,
    /// The values to bind, as text.
    #[serde(default)]
    pub params: Vec<Value>,
    /// The column by which a trigger continues: its last value is bound after `params`, null at first.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Sends a request and checks the response.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HttpSensor {
    /// The method; default GET, or POST with a body.
    #[serde(default)]
    pub method: Option<super::Method>,
    /// The URL, `http://` or `https://`.
    #[schemars(extend("format" = "http-url"))]
    pub url: String,
    /// The headers of the request.
    #[serde(default)]
    pub headers: std::collections::BTreeMap<String, super::Text>,
    /// The body: a text is sent unchanged, anything else as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// Authentication of the request.
    #[serde(default)]
    pub auth: Option<super::Auth>,
    /// An expression over `answer.status`, `answer.headers` and `answer.body`; default: any success.
    #[serde(default)]
    #[schemars(extend("format" = "expression"))]
    pub condition: Option<String>,
}

impl HttpSensor {
    /// The request. Every status is expected: the sensor's condition decides.
    pub fn request(&self) -> Http {
        let (method, url, headers) = (self.method, self.url.clone(), self.headers.clone());
        let expected_status = (100..=599).collect();
        Http { method, url, headers, body: self.body.clone(), expected_status, auth: self.auth.clone() }
    }
}

/// Waits for an instant.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TimeSensor {
    /// The instant, RFC 3339.
    #[serde(deserialize_with = "instant::deserialize")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Instant,
}

/// Waits until another run has ended.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct RunSensor {
    /// The workflow of the run.
    #[schemars(extend("format" = "workflow-name"))]
    pub workflow: String,
    /// The logical date of the run, RFC 3339.
    #[serde(deserialize_with = "instant::deserialize")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub logical_date: Instant,
    /// The required state of that run.
    #[serde(default)]
    #[schemars(with = "CompletionName")]
    pub state: model::Completion,
}

/// The names of completions, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum CompletionName {
    Succeeded,
    Failed,
    Finished,
}

/// A sensor as written.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["file"]}, {"required": ["sql"]}, {"required": ["http"]}, {"required": ["time"]}, {"required": ["run"]}
]))]
pub(crate) struct SensorFields {
    /// Polls for files or objects.
    file: Option<FileSensor>,
    /// Polls a database for rows.
    sql: Option<SqlSensor>,
    /// Polls a URL with requests.
    http: Option<HttpSensor>,
    /// Waits for an instant.
    time: Option<TimeSensor>,
    /// Waits for another run.
    run: Option<RunSensor>,
    /// The time between two polls; default 60.
    #[schemars(range(min = 1, max = 86_400), extend("format" = "fixed"))]
    interval_seconds: Option<u32>,
    /// How the time between two polls grows.
    backoff: Option<Growth>,
    /// When a task gives up; default: never.
    #[schemars(range(min = 1, max = 31_536_000), extend("format" = "fixed"))]
    timeout_seconds: Option<u32>,
    /// Whether a task that gives up is skipped instead of failed.
    #[schemars(extend("format" = "fixed"))]
    soft_fail: Option<bool>,
    /// After this many failed polls a trigger pauses; default 10.
    #[schemars(range(min = 1, max = 1_000), extend("format" = "fixed"))]
    max_failures: Option<u32>,
    /// A trigger that starts more runs within an hour pauses; default 600.
    #[schemars(range(min = 1, max = 100_000), extend("format" = "fixed"))]
    max_events_per_hour: Option<u32>,
}

/// How often a sensor polls. These settings cannot be templates, since the engine needs them before anything runs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Pace {
    interval_seconds: Option<u32>,
    backoff: Option<Growth>,
    timeout_seconds: Option<u32>,
    soft_fail: Option<bool>,
    max_failures: Option<u32>,
    max_events_per_hour: Option<u32>,
}

/// How the time between two polls grows.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Growth {
    /// The factor by which the interval grows.
    #[schemars(range(min = 1, max = 10), extend("format" = "fixed"))]
    factor: f64,
    /// The maximum interval; default 3600.
    #[schemars(range(min = 1, max = 86_400), extend("format" = "fixed"))]
    max_seconds: Option<u32>,
}

impl TryFrom<SensorFields> for Sensor {
    type Error = &'static str;

    fn try_from(fields: SensorFields) -> Result<Self, Self::Error> {
        match (fields.file, fields.sql, fields.http, fields.time, fields.run) {
            (Some(file), None, None, None, None) => Ok(Self::File(file)),
            (None, Some(sql), None, None, None) => Ok(Self::Sql(sql)),
            (None, None, Some(http), None, None) => Ok(Self::Http(Box::new(http))),
            (None, None, None, Some(time), None) => Ok(Self::Time(time)),
            (None, None, None, None, Some(run)) => Ok(Self::Run(run)),
            _ => Err("give exactly one of `file`, `sql`, `http`, `time` and `run`"),
        }
    }
}

/// How often a sensor with these settings polls. Invalid settings were reported and count as absent.
pub(crate) fn pacing(config: &Value) -> Pacing {
    let pace: Pace = serde_json::from_value(config.clone()).unwrap_or_default();
    let interval_seconds = pace.interval_seconds.unwrap_or(DEFAULT_INTERVAL);
    let growth = pace.backoff.as_ref();
    let max_interval = growth.and_then(|growth| growth.max_seconds).unwrap_or(DEFAULT_MAX_INTERVAL);
    Pacing {
        interval_seconds,
        factor: growth.map_or(1.0, |growth| growth.factor),
        max_interval_seconds: max_interval.max(interval_seconds),
        timeout_seconds: pace.timeout_seconds,
        soft_fail: pace.soft_fail.unwrap_or_default(),
        max_failures: pace.max_failures.unwrap_or(DEFAULT_MAX_FAILURES),
        max_events_per_hour: pace.max_events_per_hour.unwrap_or(DEFAULT_MAX_EVENTS),
    }
}
