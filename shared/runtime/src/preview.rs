//! Previews of a run's templates for people. Nothing is read or changed here, and secrets are masked.

use std::collections::BTreeMap;

use engine::Graph;
use language::template::{self, Scope};
use model::{Task, TaskIndex};
use serde_json::Value;
use store::{Context, RunRecord};

use crate::activate::render;
use crate::template_scope::{At, named_outputs, scope};

pub use language::expression::Evaluated;
pub use language::template::ExpressionError;

/// Stands in for the value of a secret.
const MASK: &str = "••••••";

/// The outputs that templates can name: upstream of a task, or where none is named, all of them.
pub fn visible_outputs(graph: &Graph, task: Option<TaskIndex>) -> Vec<TaskIndex> {
    task.map_or_else(|| graph.indices().collect(), |task| graph.ancestors(task))
}

/// Those of the visible outputs that the templates of a config use.
pub fn used_outputs(graph: &Graph, task: Option<TaskIndex>, config: &Value) -> Vec<TaskIndex> {
    named_outputs(graph, task, &template::outputs_of(config))
}

/// The names available to the templates of a run, with the outputs that were read for them.
pub struct TemplateNames(Scope);

impl TemplateNames {
    /// The names available to the templates of one task or, without a task, to those of any task.
    pub fn new(
        record: &RunRecord,
        graph: &Graph,
        task: Option<TaskIndex>,
        outputs: BTreeMap<TaskIndex, Value>,
    ) -> Self {
        let context = Context { facts: record.facts.clone(), outputs };
        let at = At { task: task.unwrap_or(TaskIndex(0)), child: None, attempt: 1 };
        let scope = scope(graph, &record.run, at, &context, None);
        Self(Scope { task: scope.task.filter(|_| task.is_some()), ..scope })
    }

    /// All of them as one document.
    pub fn to_json(&self) -> Value {
        self.0.to_json()
    }

    /// Evaluates an expression, or a text with `{{ … }}`.
    pub fn evaluate(&self, expression: &str) -> Result<Evaluated, ExpressionError> {
        template::try_out(expression, &self.0)
    }
}

/// The config of a task, rendered with masked secrets; as it is written where it cannot be rendered.
pub fn rendered_config(
    record: &RunRecord,
    graph: &Graph,
    task: &Task,
    outputs: BTreeMap<TaskIndex, Value>,
    item: Option<Value>,
) -> Value {
    let spec = graph.spec_at(task.index, task.child);
    let context = Context { facts: record.facts.clone(), outputs };
    let at = At { task: task.index, child: task.child, attempt: task.attempt.max(1) };
    let mut scope = scope(graph, &record.run, at, &context, item);
    let secrets = template::secrets_of(&spec.config).into_iter();
    scope.secrets = secrets.map(|name| (name, Value::from(MASK))).collect();
    render(spec, &scope).unwrap_or_else(|_| spec.config.clone())
}
