//! The catalogue of task types: what each does, its settings, and who uses it.

use api::task_types::{TaskTypeList, TaskTypeView};
use askama::Template;
use serde_json::Value;

use super::Answer;
use crate::shell::Shell;
use crate::show;
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "types.html")]
struct TypesPage {
    shell: Shell,
    custom: Vec<TaskTypeView>,
    built_in: Vec<TaskTypeView>,
    truncated: bool,
}

/// One setting of a type, or one field of its output.
struct Setting<'s> {
    name: &'s str,
    kind: String,
    required: bool,
    description: &'s str,
}

pub(crate) async fn page(visitor: Visitor) -> Answer {
    let TaskTypeList { items, truncated } = visitor.ask.get("/task-types").await?;
    let (custom, built_in) = items.into_iter().partition(|task| task.custom);
    Ok(show::html(&TypesPage { shell: visitor.shell, custom, built_in, truncated }))
}

impl TypesPage {
    /// The fields that a schema names, and those of the shapes of which one must fit.
    fn settings<'s>(&self, schema: &'s Value) -> Vec<Setting<'s>> {
        let shapes = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema[keyword].as_array());
        let mut found: Vec<Setting<'_>> = Vec::new();
        for shape in std::iter::once(schema).chain(shapes.flatten()) {
            let required: Vec<&Value> = shape["required"].as_array().into_iter().flatten().collect();
            for (name, field) in shape["properties"].as_object().into_iter().flatten() {
                if found.iter().all(|known| known.name != name) {
                    found.push(Setting {
                        name,
                        kind: kind(field),
                        required: required.iter().any(|other| *other == name),
                        description: field["description"].as_str().unwrap_or_default(),
                    });
                }
            }
        }
        found
    }

    fn schema(&self, schema: &Value) -> String {
        show::json(schema)
    }
}

/// The JSON type of a field, in a word or two.
fn kind(field: &Value) -> String {
    match (&field["type"], &field["enum"]) {
        (_, Value::Array(words)) => {
            let words = words.iter().filter(|word| !word.is_null());
            words
                .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(", ")
        }
        (Value::String(name), _) => name.clone(),
        (Value::Array(names), _) => names
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    }
}
