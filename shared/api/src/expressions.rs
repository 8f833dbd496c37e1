//! Expressions and templates of a run, for people: everything they see is read as the caller, and nothing is changed.

use host::Problem;
use model::{Task, TaskIndex};
use read::RunReader;
use runtime::{Graph, TemplateNames};
use serde_json::Value;

pub use runtime::{Evaluated, ExpressionError};

/// What the templates of a run, or of one of its tasks, can name.
pub struct Playground(TemplateNames);

impl Playground {
    /// Reads what templates of a task can name, or where none is named, those of any task.
    pub async fn open(run: &RunReader, graph: &Graph, task: Option<TaskIndex>) -> Result<Self, Problem> {
        let outputs = run.outputs(&runtime::visible_outputs(graph, task)).await?;
        Ok(Self(TemplateNames::new(run.record(), graph, task, outputs)))
    }

    /// All names as one document.
    pub fn names(&self) -> Value {
        self.0.to_json()
    }

    /// The value of an expression, or of a text with `{{ … }}`, or what is wrong with it and where.
    pub fn evaluate(&self, expression: &str) -> Result<Evaluated, ExpressionError> {
        self.0.evaluate(expression)
    }
}

/// The config of a task, rendered with masked secrets; as it is written where it cannot be rendered.
pub async fn rendered_config(run: &RunReader, graph: &Graph, task: &Task) -> Result<Value, Problem> {
    let anchor = task.child.map_or(task.index, |child| child.of);
    let outputs = run.outputs(&runtime::visible_outputs(graph, Some(anchor))).await?;
    let item = if task.child.is_some() { run.item(task.index).await? } else { None };
    Ok(runtime::rendered_config(run.record(), graph, task, outputs, item))
}
