//! The task types that a schema offers: the built-in ones, and the custom ones of a project.

use model::{TaskKind, TypeName};
use serde_json::{Map, Value, json};

use crate::types::{TaskType, types};

/// What of a custom type's schema cannot be said about a text that may be a template, and is left to the compiler.
const LEFT_OUT: [&str; 12] = [
    "allOf",
    "if",
    "then",
    "else",
    "not",
    "contains",
    "prefixItems",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "maxLength",
];

/// The task types that a schema offers.
pub(super) struct Kinds {
    all: Vec<TaskType>,
    /// Whether there may be custom types that are not known here.
    is_open: bool,
}

impl Kinds {
    /// The built-in types, and custom ones of which nothing is known.
    pub(super) fn any() -> Self {
        Self { all: types().to_vec(), is_open: true }
    }

    /// The built-in types and these.
    pub(super) fn of(custom: &[TaskType]) -> Self {
        let for_editors = |task: &TaskType| TaskType { schema: editable(&task.schema), ..task.clone() };
        Self { all: types().iter().cloned().chain(custom.iter().map(for_editors)).collect(), is_open: false }
    }

    /// Every type whose settings are known, and the one that stands for all others.
    pub(super) fn types(&self) -> impl Iterator<Item = &TaskType> {
        self.all.iter().chain(self.is_open.then(other))
    }

    /// Lists the types in the field `type` of a task.
    pub(super) fn offer(&self, task: &mut Value, allowed: impl Fn(&TaskKind) -> bool) {
        let known = self.all.iter().filter(|task| allowed(&task.kind));
        let known = known.map(|task| json!({"const": task.kind, "description": task.summary}));
        let custom =
            json!({"type": "string", "pattern": TypeName::PATTERN, "maxLength": TypeName::MAX_CHARS});
        task["properties"]["type"]["oneOf"] = known.chain(self.is_open.then_some(custom)).collect();
    }

    /// The rules of all types that are allowed somewhere.
    pub(super) fn rules(
        &self,
        allowed: impl Fn(&TaskKind) -> bool,
        rules: impl Fn(&TaskType) -> Value,
    ) -> impl Iterator<Item = Value> {
        let known = self
            .all
            .iter()
            .filter(move |task| allowed(&task.kind))
            .map(|task| (json!({"const": task.kind}), task));
        let others = self.is_open.then(|| (json!({"pattern": TypeName::PATTERN}), other()));
        known.chain(others).map(move |(kind, task)| {
            json!({"if": {"properties": {"type": kind}, "required": ["type"]}, "then": rules(task)})
        })
    }
}

/// Stands for the custom types that are not known.
fn other() -> &'static TaskType {
    TaskType::of(&TaskKind::Custom(TypeName::new("custom.type").expect("it has a dot")))
}

/// A custom type's schema with what editors can check before templates are rendered.
fn editable(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(keyword, _)| !LEFT_OUT.contains(&keyword.as_str()));
            let kept = kept.map(|(keyword, inner)| {
                let is_value =
                    ["enum", "const", "default", "examples", "required"].contains(&keyword.as_str());
                let inner = match keyword.as_str() {
                    _ if is_value => inner.clone(),
                    "properties" | "$defs" => each(inner),
                    _ => editable(inner),
                };
                (keyword.clone(), inner)
            });
            kept.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(editable).collect(),
        other => other.clone(),
    }
}

fn each(schemas: &Value) -> Value {
    let entries = schemas.as_object().into_iter().flatten();
    entries.map(|(name, schema)| (name.clone(), editable(schema))).collect::<Map<_, _>>().into()
}
