//! The schemas of a custom type, compiled: settings and outputs are checked against them.

use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use model::{CustomType, TaskKind, TypeName};
use serde_json::Value;

use super::bounds;
use crate::config::ConfigError;
use crate::diagnostic::Finding;
use crate::node::{Data, Node, Path, Position, join};
use crate::schema::{self, Extent};
use crate::suggest::Budget;
use crate::template;

/// The maximum size of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 64 << 10;
/// The maximum number of values, times that of the schemas that each may be checked against: a validator looks for every
/// problem before it names the first.
const MAX_CHECKS: usize = 2_000_000;
/// Up to this cost, every problem of an output is looked for, not only the first.
const MAX_COLLECTED: usize = 20_000;
/// The maximum number of problems of an output, or of rendered settings, that are reported.
const MAX_PROBLEMS: usize = 5;
/// The maximum number of problems of written settings that are reported.
const MAX_FINDINGS: usize = 100;
/// The maximum number of problems of settings that are looked at, with those that are not reported.
const MAX_EXAMINED: usize = 1_000;
/// The maximum length of one problem, in characters: it may repeat parts of the schema.
const MAX_CHARS: usize = 300;

/// The schemas of a custom type, compiled once for all of its tasks.
#[derive(Clone, Debug)]
pub struct TypeChecks {
    kind: TaskKind,
    schema: Value,
    config: Compiled,
    output: Option<Compiled>,
}

/// A compiled schema, and how much a check against it costs.
#[derive(Clone, Debug)]
struct Compiled {
    validator: Validator,
    /// The number of schemas in it, and of entries of long lists.
    size: usize,
    /// The number of patterns in it.
    patterns: usize,
}

impl Compiled {
    /// How much it costs to check this number of values.
    fn checks(&self, values: usize) -> usize {
        values.saturating_mul(self.size)
    }

    /// Why a value is not checked, if it has too many values in it.
    fn excess(&self, values: usize) -> Option<String> {
        let is_excessive = self.checks(values) > MAX_CHECKS;
        is_excessive.then(|| format!("it has too many values ({values}) for a schema of this size"))
    }
}

/// A schema that is not valid itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidSchema {
    /// Whether it is the schema of the output, not of the settings.
    pub in_output: bool,
    /// Where in the schema, as a JSON pointer.
    pub pointer: String,
    why: String,
}

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the JSON Schema is not valid: {}", self.why)
    }
}

/// An output that does not fit its task type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the output does not fit the task type `{kind}`: {}", problems.join("; "))]
pub struct OutputError {
    kind: TaskKind,
    problems: Vec<String>,
}

impl TypeChecks {
    /// Compiles the schemas of a type.
    pub fn compile(name: &TypeName, custom: &CustomType) -> Result<Self, InvalidSchema> {
        let compile = |schema: &Value, in_output| {
            // A pattern that backtracks could take forever.
            let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
            let options = jsonschema::options().with_pattern_options(patterns);
            let compiled = options.build(schema).map_err(|error| InvalidSchema {
                in_output,
                pointer: error.instance_path().as_str().to_owned(),
                why: in_words(&error),
            });
            // Long lists, as of `enum` and `required`, are gone through for each value, too.
            let size = bounds::size(schema).saturating_add(listed(schema));
            compiled.map(|validator| Compiled { validator, size, patterns: bounds::all_patterns(schema) })
        };
        Ok(Self {
            kind: TaskKind::Custom(name.clone()),
            schema: custom.config.clone(),
            config: compile(&custom.config, false)?,
            output: custom.output.as_ref().map(|schema| compile(schema, true)).transpose()?,
        })
    }

    /// The maximum size of its compiled patterns, in bytes.
    pub fn max_pattern_bytes(&self) -> usize {
        // Each may have a cache of the same size.
        2 * MAX_PATTERN * (self.config.patterns + self.output.as_ref().map_or(0, |output| output.patterns))
    }

    /// Whether rendered settings fit the type.
    pub fn check_config(&self, rendered: &Value) -> Result<(), ConfigError> {
        let mut root = Node::from_json(rendered);
        root.locate(0, Path::default());
        let findings = self.findings(&root, Extent::Rendered, &Budget::default());
        let problems: Vec<String> = findings.into_iter().map(Finding::in_words).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ConfigError { kind: self.kind.clone(), problems }),
        }
    }

    /// Whether an output fits the type.
    pub fn check_output(&self, output: &Value) -> Result<(), OutputError> {
        let Some(schema) = &self.output else { return Ok(()) };
        let problem = |error: ValidationError<'_>| match error.instance_path().as_str() {
            "" => in_words(&error),
            pointer => {
                format!("{}: {}", segments(pointer).iter().fold(String::new(), path), in_words(&error))
            }
        };
        let problems = match schema.excess(values(output)) {
            Some(excess) => vec![excess],
            None => match schema.validator.validate(output) {
                Ok(()) => return Ok(()),
                // The validator collects all errors before it returns the first one.
                Err(_) if schema.checks(values(output)) <= MAX_COLLECTED => {
                    schema.validator.iter_errors(output).take(MAX_PROBLEMS).map(problem).collect()
                }
                Err(first) => vec![problem(first)],
            },
        };
        Err(OutputError { kind: self.kind.clone(), problems })
    }

    /// What about settings the type does not allow. What depends on a template is checked once it is rendered.
    pub(crate) fn findings(&self, config: &Node, extent: Extent, budget: &Budget) -> Vec<Finding> {
        if let Some(message) = self.config.excess(nodes(config)) {
            return vec![Finding { at: config.at.clone(), message, hint: None }];
        }
        let most = if extent == Extent::Rendered { MAX_PROBLEMS } else { MAX_FINDINGS };
        let mut findings = schema::check(&self.schema, config, self.kind.name(), extent, budget);
        findings.truncate(most);
        let known: Vec<Path> = findings.iter().map(|finding| finding.at.path.clone()).collect();
        let instance = match extent {
            Extent::Part => return findings,
            _ if findings.len() == most => return findings,
            Extent::Whole => without_nothing(config),
            Extent::Rendered => config.to_json(),
        };
        for error in self.config.validator.iter_errors(&instance).take(MAX_EXAMINED) {
            if findings.len() == most {
                break;
            }
            let node = find(config, error.instance_path().as_str());
            let is_open = extent == Extent::Whole && has_template(node);
            if !is_open && !known.iter().any(|path| path.is_within(&node.at.path)) {
                let (at, message) = (node.at.clone(), format!("`{}`: {}", self.kind, in_words(&error)));
                findings.push(Finding { at, message, hint: None });
            }
        }
        findings
    }
}

/// The number of values in a value, with itself.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The number of nodes in a node, with itself.
fn nodes(node: &Node) -> usize {
    match &node.data {
        Data::List(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Data::Map(entries) => 1 + entries.iter().map(|(_, value)| nodes(value)).sum::<usize>(),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) => 1,
    }
}

fn in_words(error: &ValidationError<'_>) -> String {
    let words = error.masked_with("the value").to_string();
    match words.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// The number of entries in the lists that are gone through for each value.
fn listed(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(listed).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(keyword, value)| match (keyword.as_str(), value) {
                ("enum" | "required", Value::Array(entries)) => entries.len() / 8,
                _ => listed(value),
            })
            .sum(),
        _ => 0,
    }
}

/// The names along a JSON pointer.
fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

fn path(path: String, segment: impl AsRef<str>) -> String {
    match segment.as_ref().parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) => join(&path, segment.as_ref()),
    }
}

/// The deepest node that exists along a JSON pointer.
fn find<'n>(mut node: &'n Node, pointer: &str) -> &'n Node {
    for segment in segments(pointer) {
        let inner = match &node.data {
            Data::Map(entries) => entries.iter().find(|(key, _)| key.name == segment).map(|(_, value)| value),
            Data::List(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        };
        let Some(inner) = inner else { break };
        node = inner;
    }
    node
}

/// Where the deepest thing along a JSON pointer was written.
pub(super) fn position<'n>(node: &'n Node, pointer: &str) -> &'n Position {
    &find(node, pointer).at
}

fn has_template(node: &Node) -> bool {
    match &node.data {
        Data::Text(text) => template::is_template(text),
        Data::List(items) => items.iter().any(has_template),
        Data::Map(entries) => entries.iter().any(|(_, value)| has_template(value)),
        Data::Null | Data::Bool(_) | Data::Number(_) => false,
    }
}

/// The settings without those that have nothing after them: these count as absent.
fn without_nothing(node: &Node) -> Value {
    match &node.data {
        Data::Map(entries) => {
            let written = entries.iter().filter(|(_, value)| !value.is_null());
            Value::Object(written.map(|(key, value)| (key.name.clone(), without_nothing(value))).collect())
        }
        Data::List(items) => items.iter().map(without_nothing).collect(),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) => node.to_json(),
    }
}
