//! The inputs of one run: what was given, checked, and defaults for the rest.

use std::fmt;

use chrono::DateTime;
use model::{InputSpec, InputType, Workflow};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{InputNames, value};
use crate::suggest::Budget;
use crate::template::{self, Scope};

/// Why an input is refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InputProblem {
    /// The name of the input.
    pub input: String,
    /// The reason, in a sentence.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for InputProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input `{}`: {}", self.input, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// The inputs of a run that was given `given`, or everything that is wrong with them. Defaults are rendered
/// in `scope`; a default sees the inputs declared before it.
pub fn bind(
    workflow: &Workflow,
    given: &Map<String, Value>,
    scope: &Scope,
) -> Result<Map<String, Value>, Vec<InputProblem>> {
    let mut problems = unknown(workflow, given);
    let mut scope = Scope { inputs: Map::new(), ..scope.clone() };
    for input in &workflow.inputs {
        match bind_one(input, given.get(&input.name), &scope) {
            Ok(value) => drop(scope.inputs.insert(input.name.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(scope.inputs) } else { Err(problems) }
}

/// What a schedule gives its runs, rendered in `scope`.
pub fn render(
    workflow: &Workflow,
    given: &Map<String, Value>,
    scope: &Scope,
) -> Result<Map<String, Value>, Vec<InputProblem>> {
    let mut rendered = Map::new();
    for (name, value) in given {
        let problem = |error: template::RenderError| {
            vec![InputProblem { input: name.clone(), message: error.message, hint: error.hint }]
        };
        let kind = workflow.inputs.iter().find(|input| input.name == *name).map(|input| input.kind);
        let value = if template::is_plain(value) {
            value.clone()
        } else {
            as_date(kind.unwrap_or(InputType::String), template::render(value, scope).map_err(problem)?)
        };
        rendered.insert(name.clone(), value);
    }
    Ok(rendered)
}

fn unknown(workflow: &Workflow, given: &Map<String, Value>) -> Vec<InputProblem> {
    let known = InputNames::of(&workflow.inputs);
    let budget = Budget::default();
    let unknown = given.keys().filter(|name| !known.contains(name));
    let problem = |name: &String| InputProblem {
        input: name.clone(),
        message: format!("the workflow `{}` has no such input", workflow.name),
        hint: budget.hint(name, known.iter()),
    };
    unknown.map(problem).collect()
}

fn bind_one(input: &InputSpec, given: Option<&Value>, scope: &Scope) -> Result<Value, InputProblem> {
    let problem = |message: String, hint| InputProblem { input: input.name.clone(), message, hint };
    let value = match (given, &input.default) {
        (Some(value), _) => value.clone(),
        (None, Some(default)) => {
            let rendered =
                template::render(default, scope).map_err(|error| problem(error.message, error.hint))?;
            as_date(input.kind, rendered)
        }
        (None, None) => return Err(problem("it is required, and none was given".to_owned(), None)),
    };
    match value::refusal(input, &value) {
        Some((message, hint)) => Err(problem(message, hint)),
        None => Ok(value),
    }
}

/// A default such as `{{ logical_date }}` is an instant; for an input that is a date, its day is meant.
fn as_date(kind: InputType, value: Value) -> Value {
    let instant = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    match (kind, instant) {
        (InputType::Date, Some(instant)) => instant.format("%Y-%m-%d").to_string().into(),
        _ => value,
    }
}
