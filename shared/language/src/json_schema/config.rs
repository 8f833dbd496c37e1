//! The settings of each task type, as they are written: its own schema, with templates wherever one may stand.

use model::TaskKind;
use serde_json::{Map, Value, json};

use super::kinds::Kinds;
use super::values::{or_template, types};
use crate::node::{Data, Node, Position};
use crate::schema::format::Format;
use crate::schema::{self, Extent, scalar};
use crate::shape::described;
use crate::suggest::Budget;
use crate::types::TaskType;

/// The schemas of all settings, by the names that [`name`] gives them.
pub(super) fn all(extent: Extent, kinds: &Kinds) -> Map<String, Value> {
    let of = |task: &TaskType| {
        let name = name(&task.kind);
        let publisher = Publisher { home: format!("#/$defs/{name}"), extent };
        let description = match &task.kind {
            TaskKind::Custom(custom) => format!("Settings of `{custom}`: {}", task.summary),
            built_in => format!("Settings of `{built_in}`, which {}.", task.summary),
        };
        (name, described(&description, publisher.value(&task.schema)))
    };
    kinds.types().map(of).collect()
}

/// What the schema of a type's settings is called.
pub(super) fn name(kind: &TaskKind) -> String {
    format!("{kind}_config")
}

/// Whether a task of that type cannot do without settings.
pub(super) fn is_needed(task: &TaskType) -> bool {
    let nothing = Node { data: Data::Map(Vec::new()), at: Position::default() };
    !schema::check(&task.schema, &nothing, task.kind.name(), Extent::Whole, &Budget::default()).is_empty()
}

struct Publisher {
    /// Where the schema stands among the others.
    home: String,
    extent: Extent,
}

impl Publisher {
    fn value(&self, schema: &Value) -> Value {
        match scalar::is_fixed(schema) {
            true => self.shape(schema),
            false => or_template(self.shape(schema)),
        }
    }

    /// A schema whose parts may be templates, and which is none itself.
    fn shape(&self, schema: &Value) -> Value {
        let Value::Object(given) = schema else { return schema.clone() };
        let mut found = Map::new();
        for (key, inner) in given {
            let inner = match key.as_str() {
                "$schema" | "title" => continue,
                "required" | "dependentRequired" if self.extent == Extent::Part => continue,
                "format" => {
                    found.extend(Format::of(schema).into_iter().flat_map(Format::keywords));
                    continue;
                }
                "default" if inner.is_null() => continue,
                "$ref" => self.moved(inner),
                "properties" | "$defs" => self.each(inner),
                "items" | "additionalProperties" => self.value(inner),
                "propertyNames" => self.shape(inner),
                "anyOf" | "oneOf" => {
                    found.extend(self.alternatives(key, inner));
                    continue;
                }
                _ => inner.clone(),
            };
            found.insert(key.clone(), inner);
        }
        explain(&mut found);
        without_nothing(found).into()
    }

    fn each(&self, schemas: &Value) -> Value {
        let entries = schemas.as_object().into_iter().flatten();
        entries.map(|(name, schema)| (name.clone(), self.value(schema))).collect::<Map<_, _>>().into()
    }

    /// The shapes of which one must fit. A part may lack the fields by which they differ.
    fn alternatives(&self, key: &str, shapes: &Value) -> Map<String, Value> {
        let shapes = shapes.as_array().into_iter().flatten().filter(|shape| shape["type"] != "null");
        let mut shapes: Vec<Value> = shapes.map(|shape| self.shape(shape)).collect();
        let key = if self.extent == Extent::Part { "anyOf" } else { key };
        match shapes.len() {
            1 => std::mem::take(&mut shapes[0]).as_object().cloned().unwrap_or_default(),
            _ if shapes.iter().all(|shape| shape == &json!({})) => Map::new(),
            _ => Map::from_iter([(key.to_owned(), shapes.into())]),
        }
    }

    fn moved(&self, target: &Value) -> Value {
        target
            .as_str()
            .and_then(|target| target.strip_prefix('#'))
            .map_or_else(|| target.clone(), |pointer| format!("{}{pointer}", self.home).into())
    }
}

/// What is said of a shape with a single field is said of that field, which is what people point at.
fn explain(shape: &mut Map<String, Value>) {
    let Some(description) = shape.get("description").cloned() else { return };
    let fields =
        shape.get_mut("properties").and_then(Value::as_object_mut).filter(|fields| fields.len() == 1);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()).filter_map(Value::as_object_mut) {
        field.entry("description").or_insert(description.clone());
    }
}

/// Without the `null` of optional settings: a setting that is written has a value.
fn without_nothing(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let mut named = types(&Value::Object(schema.clone()));
    named.retain(|name| name != "null");
    match named.len() {
        0 => None,
        1 => schema.insert("type".to_owned(), named.remove(0)),
        _ => schema.insert("type".to_owned(), named.into()),
    };
    schema
}
