//! The formats of texts in the schemas of task types. Each row holds everything about one format: what the language
//! checks, what editors get instead of its name, and whether a template may stand in its place.

use std::sync::LazyLock;

use model::ScriptPath;
use model::instant::{self, InvalidInstant};
use regex::Regex;
use serde_json::{Map, Value, json};

use super::scalar::Problem;
use crate::duration::Duration;
use crate::names::{self, Rule};
use crate::shape::{DURATION, DURATIONS, Shape, name as name_shape};
use crate::template;

/// The maximum length of a function's name and its module's, in bytes. The module stands for a file in each of its packages.
const MAX_FUNCTION: usize = 255;

/// A format that the schema of a setting may name.
pub(crate) struct Format {
    name: &'static str,
    /// Whether the setting must be known before anything runs, and so cannot be a template.
    pub(crate) is_fixed: bool,
    /// Returns the reason why a text does not have the format.
    problem: fn(&str) -> Option<Problem>,
    /// Returns the keywords of JSON Schema that editors know.
    keywords: fn() -> Value,
}

static FORMATS: [Format; 14] = [
    HTTP_URL,
    FUNCTION,
    Format::open(
        "duration",
        not_a_duration,
        || json!({"pattern": DURATION, "minLength": 1, "examples": DURATIONS}),
    ),
    Format::open("date-time", not_a_date, || json!({"format": "date-time"})),
    Format::open("script-path", not_a_path, script_path),
    Format::fixed(
        "requirements-path",
        |text| in_template(text, PACKAGES).or_else(|| not_a_path(text)),
        script_path,
    ),
    Format::fixed(
        "package",
        |text| in_template(text, PACKAGES).or_else(|| not_a_package(text)),
        || json!({"pattern": PACKAGE.as_str()}),
    ),
    Format::open(
        "python-version",
        not_a_version,
        || json!({"pattern": VERSION.as_str(), "examples": ["3.12"]}),
    ),
    Format::fixed(
        "signal-name",
        |text| in_template(text, SIGNAL).or_else(|| misnamed(text, &names::SIGNAL)),
        || name_shape(&names::SIGNAL).schema(),
    ),
    Format::open(
        "workflow-name",
        |text| misnamed(text, &names::PLAIN),
        || name_shape(&names::PLAIN).schema(),
    ),
    Format::open("field-name", |text| misnamed(text, &names::FIELD), || name_shape(&names::FIELD).schema()),
    Format::fixed("expression", |text| in_template(text, EXPRESSION), || json!({})),
    Format::fixed("statement", |text| in_template(text, STATEMENT), || json!({})),
    Format::fixed("fixed", |_| None, || json!({})),
];

/// A URL for HTTP.
pub(crate) const HTTP_URL: Format = Format::open("http-url", not_a_url, || json!({"pattern": URL.as_str()}));

/// A function of a Python module: `module:function`, both possibly with dots.
pub(crate) const FUNCTION: Format = Format::fixed(
    "function",
    not_a_function,
    || json!({"pattern": PYTHON_FUNCTION.as_str(), "maxLength": MAX_FUNCTION}),
);

static URL: LazyLock<Regex> = LazyLock::new(|| regex("^https?://"));
static PYTHON_FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]{1,3}(\.[0-9]{1,3}){0,2}$"));
/// One line that names something. A line that begins with a dash would be an option of pip, and a value must not become one.
static PACKAGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[^\S\r\n]*[^\s-][^\r\n]*$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern is valid")
}

/// Why a template cannot stand there, and what to write instead.
type NoTemplate = (&'static str, &'static str);

const PACKAGES: NoTemplate = (
    "packages cannot be named by a template",
    "packages are code: write each of them, or choose with a `switch` between tasks",
);
const SIGNAL: NoTemplate = (
    "a signal's name cannot be a template",
    "senders must know it: use a fixed name, and send variable data as the payload",
);
const EXPRESSION: NoTemplate = ("an expression is written without braces", "");
const STATEMENT: NoTemplate = (
    "values are bound to a query, never pasted into it",
    "write `$1` where a value goes, and the value into `params`",
);

impl Format {
    /// The format that a schema names, if it is one that the language checks.
    pub(crate) fn of(schema: &Value) -> Option<&'static Self> {
        let name = schema.get("format")?.as_str()?;
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Returns the reason why a text does not have the format.
    pub(crate) fn problem(&self, text: &str) -> Option<Problem> {
        (self.problem)(text)
    }

    /// What editors get instead of the format.
    pub(crate) fn keywords(&self) -> Map<String, Value> {
        (self.keywords)().as_object().cloned().unwrap_or_default()
    }

    const fn open(name: &'static str, problem: fn(&str) -> Option<Problem>, keywords: fn() -> Value) -> Self {
        Self { name, is_fixed: false, problem, keywords }
    }

    const fn fixed(
        name: &'static str,
        problem: fn(&str) -> Option<Problem>,
        keywords: fn() -> Value,
    ) -> Self {
        Self { name, is_fixed: true, problem, keywords }
    }
}

fn in_template(text: &str, (message, hint): NoTemplate) -> Option<Problem> {
    let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
    template::is_template(text).then(|| Problem { message: message.to_owned(), hint })
}

fn mismatch(text: &str, pattern: &Regex, what: &str, hint: &str) -> Option<Problem> {
    let message = || format!("`{}` is not {what}", text.escape_debug());
    (!pattern.is_match(text)).then(|| Problem { message: message(), hint: Some(hint.to_owned()) })
}

fn not_a_url(text: &str) -> Option<Problem> {
    mismatch(text, &URL, "an HTTP URL", "begin it with `https://`")
}

fn not_a_package(text: &str) -> Option<Problem> {
    mismatch(
        text,
        &PACKAGE,
        "a package",
        "write one package per entry; options of pip belong in `requirements_file`",
    )
}

fn not_a_version(text: &str) -> Option<Problem> {
    mismatch(text, &VERSION, "a version of Python", "such as `\"3.12\"`, in quotes")
}

fn not_a_function(text: &str) -> Option<Problem> {
    if text.len() > MAX_FUNCTION {
        let length = text.len();
        let message =
            format!("the name of a function has {length} bytes, more than the {MAX_FUNCTION} allowed");
        return Some(Problem { message, hint: None });
    }
    let hint = "such as `report:build`, for the function `build` in the file `report.py`";
    mismatch(text, &PYTHON_FUNCTION, "a function, as `module:function`", hint)
}

fn not_a_duration(text: &str) -> Option<Problem> {
    let error = text.parse::<Duration>().err()?;
    Some(Problem { message: error.to_string(), hint: None })
}

fn not_a_date(text: &str) -> Option<Problem> {
    match instant::parse(text).err()? {
        InvalidInstant::Format(text) => {
            let message = format!("`{text}` is not an RFC 3339 timestamp");
            Some(Problem { message, hint: Some("such as `2026-01-31T18:00:00Z`".to_owned()) })
        }
        year => Some(Problem { message: year.to_string(), hint: None }),
    }
}

fn not_a_path(text: &str) -> Option<Problem> {
    let hint = Some("put the script into that folder, and name it from there".to_owned());
    Some(Problem { message: ScriptPath::new(text).err()?.to_string(), hint })
}

fn script_path() -> Value {
    json!({"pattern": ScriptPath::PATTERN})
}

fn misnamed(text: &str, rule: &Rule) -> Option<Problem> {
    names::refusal(text, rule).map(|(message, hint)| Problem { message, hint })
}
