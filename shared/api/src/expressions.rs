//! Expressions and templates of a run, for people to try out: all values are read as the caller, and nothing is changed.

use host::Problem;
use model::{Task, TaskIndex};
use read::RunReader;
use runtime::{Graph, TemplateNames};
use serde_json::Value;

pub use runtime::{Evaluated, ExpressionError};

/// The names available to the templates of a run or of one of its tasks.
pub struct Playground {
    /// With the beginnings of long outputs.
    names: TemplateNames,
    /// With the outputs that the expression uses; none if they are too large to be tried out.
    used: Option<TemplateNames>,
    expression: String,
}

impl Playground {
    /// Reads what templates of a task can name, or where none is named, those of any task; the outputs that an expression uses as
    /// a whole.
    pub async fn open(
        run: &RunReader,
        graph: &Graph,
        task: Option<TaskIndex>,
        expression: String,
    ) -> Result<Self, Problem> {
        let names = |outputs| TemplateNames::new(run.record(), graph, task, outputs);
        let previews = run.output_previews(&runtime::visible_outputs(graph, task)).await?;
        let used = runtime::used_outputs(graph, task, &Value::String(expression.clone()));
        let used = run.outputs(&used).await?.map(names);
        Ok(Self { names: names(previews), used, expression })
    }

    /// All names as one document, with the beginnings of long outputs.
    pub fn names(&self) -> Value {
        self.names.to_json()
    }

    /// The value of the expression, or of a text with `{{ … }}`, or what is wrong with it and where.
    pub fn evaluate(&self) -> Result<Evaluated, ExpressionError> {
        let too_large = || ExpressionError {
            message: "the outputs that it uses are too large together to be tried out".to_owned(),
            hint: Some("name fewer of them, such as `outputs.extract`".to_owned()),
            at: 0..self.expression.len(),
        };
        self.used.as_ref().ok_or_else(too_large)?.evaluate(&self.expression)
    }
}

/// The config of a task, rendered with masked secrets; as it is written where it cannot be rendered, or where what it uses is
/// too large to be shown.
pub async fn rendered_config(run: &RunReader, graph: &Graph, task: &Task) -> Result<Value, Problem> {
    let (anchor, spec) =
        (task.child.map_or(task.index, |child| child.of), graph.spec_at(task.index, task.child));
    let used = runtime::used_outputs(graph, Some(anchor), &spec.config);
    let Some(outputs) = run.outputs(&used).await? else { return Ok(spec.config.clone()) };
    let item = if task.child.is_some() { run.item(task.index).await? } else { None };
    Ok(runtime::rendered_config(run.record(), graph, task, outputs, item))
}
