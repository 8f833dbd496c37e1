//! Trying out an expression on a run: what comes of it there, or what is wrong with it and where. Nothing is changed.

use api::Graph;
use api::expressions::{Evaluated, ExpressionError, Playground};
use read::RunReader;
use serde_json::Value;

use super::RunQuery;
use crate::refused::Refused;
use crate::show::{self, Markup};

/// An expression and what came of it.
pub(super) struct Tried {
    pub(super) expression: String,
    /// The task in whose scope it is evaluated.
    pub(super) task: Option<String>,
    /// The tasks that there are to choose from.
    pub(super) tasks: Vec<String>,
    /// What can be named.
    pub(super) names: Value,
    /// Its value and what it saw, or what is wrong with it and the text with that place marked.
    pub(super) outcome: Option<Result<Evaluated, (ExpressionError, Markup)>>,
}

impl Tried {
    pub(super) async fn new(run: &RunReader, graph: &Graph, wanted: &RunQuery) -> Result<Self, Refused> {
        let task = wanted.task.clone().filter(|task| graph.index_of(task).is_some());
        let index = task.as_deref().and_then(|task| graph.index_of(task));
        // A field of a form has other ends of lines than the language.
        let expression = wanted.expression.clone().unwrap_or_default().replace("\r\n", "\n");
        let playground = Playground::open(run, graph, index, expression.clone()).await?;
        let with_place = |error: ExpressionError| {
            let marked = marked(&expression, &error);
            (error, marked)
        };
        let outcome = || playground.evaluate().map_err(with_place);
        let outcome = (!expression.trim().is_empty()).then(outcome);
        let tasks = graph.workflow().tasks.iter().map(|task| task.name.clone()).collect();
        Ok(Self { task, tasks, names: playground.names(), outcome, expression })
    }

    /// In a word or two: what kind of value came of it, and whether a condition would hold.
    pub(super) fn verdict(&self) -> String {
        match &self.outcome {
            Some(Ok(done)) => {
                format!("{}; as a condition it evaluates to {}", kind(&done.value), done.truth)
            }
            Some(Err(_)) => "It cannot be evaluated".into(),
            None => String::new(),
        }
    }
}

/// The text with the place marked at which something is wrong.
fn marked(text: &str, error: &ExpressionError) -> Markup {
    let part = |range: std::ops::Range<usize>| show::escaped(text.get(range).unwrap_or_default());
    let (start, end) = (error.at.start, error.at.end);
    Markup(format!("{}<mark>{}</mark>{}", part(0..start), part(start..end), part(end..text.len())))
}

/// What kind of value it is, in the language's words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "Nothing",
        Value::Bool(_) => "A boolean",
        Value::Number(number) if number.is_f64() => "A number",
        Value::Number(_) => "An integer",
        Value::String(_) => "A text",
        Value::Array(_) => "A list",
        Value::Object(_) => "An object",
    }
}
