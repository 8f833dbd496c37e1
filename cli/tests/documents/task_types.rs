//! The reference of workflow fields and task types, from the published JSON Schema.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

/// The pattern of a schema whose value may be a template.
const TEMPLATE: &str = "\\{[{%#]";

const HEAD: &str = "<!-- Generated from workflows/schemas/workflow.json by cli/tests/documents/task_types.rs. -->

# Fields and task types

Every field of a workflow file and every setting of each task type. The same facts are in the JSON Schema that editors use
(`ebb schema workflow`). [The language](language.md) explains how the parts work together.

A setting of a task type may be a [template](expressions.md) wherever its value is only known at run time. A *text* is a
string, a number or a boolean; a *duration* is a number of seconds or a text such as `30s`, `5m`, `1h30m` or `2d`.
";

/// Shapes that several fields share have a section of their own.
const SECTIONS: [(&str, &str); 6] = [
    ("task", "Task"),
    ("retry_policy", "Retry policy"),
    ("input", "Input"),
    ("schedule", "Schedule"),
    ("callbacks", "Callbacks"),
    ("sensor_config", "Sensor"),
];

struct Row {
    name: String,
    kind: String,
    required: bool,
    default: Option<String>,
    meaning: String,
}

pub(crate) fn page() -> String {
    let path = super::root().join("workflows/schemas/workflow.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let reader = Reader { root: &schema };
    let mut page = HEAD.to_owned();
    page.push_str("\n## Workflow\n");
    table(&mut page, &reader.workflow());
    // A sensor is described among the task types.
    for (name, title) in SECTIONS.iter().filter(|(name, _)| *name != "sensor_config") {
        write!(page, "\n## {title}\n").unwrap();
        table(&mut page, &reader.rows(&schema["$defs"][*name], ""));
    }
    page.push_str("\n## Task types\n");
    for kind in reader.task_types() {
        let config = &schema["$defs"][format!("{kind}_config")];
        write!(page, "\n### `{kind}`\n\n{}\n", summary(config)).unwrap();
        table(&mut page, &reader.rows(config, ""));
    }
    page
}

fn table(page: &mut String, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    page.push_str("\n| field | value | default | meaning |\n|---|---|---|---|\n");
    for row in rows {
        let default = match (&row.default, row.required) {
            (_, true) => "*required*".to_owned(),
            (Some(value), false) => format!("`{value}`"),
            (None, false) => String::new(),
        };
        let cells = [format!("`{}`", row.name), row.kind.clone(), default, row.meaning.clone()];
        writeln!(page, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")).unwrap();
    }
}

/// What a task type does. The description of its settings begins with the type's name, as the heading does.
fn summary(config: &Value) -> String {
    let summary = config["description"].as_str().unwrap_or_default();
    let summary = summary.split_once(", which ").map_or(summary, |(_, rest)| rest);
    let mut letters = summary.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

struct Reader<'s> {
    root: &'s Value,
}

impl<'s> Reader<'s> {
    fn task_types(&self) -> Vec<&'s str> {
        let choices = self.root["$defs"]["task"]["properties"]["type"]["oneOf"].as_array();
        choices.into_iter().flatten().filter_map(|choice| choice["const"].as_str()).collect()
    }

    /// The fields of a workflow: described at the top, their shapes where it extends no template.
    fn workflow(&self) -> Vec<Row> {
        let (described, shapes) = (&self.root["properties"], &self.root["else"]["properties"]);
        let names = described.as_object().into_iter().flatten();
        let rows = names.flat_map(|(name, field)| {
            let shape = if shapes[name].is_object() { &shapes[name] } else { field };
            let mut rows = self.field(name, shape, name == "name" || name == "tasks");
            rows[0].meaning = description(field).unwrap_or_default();
            rows
        });
        rows.collect()
    }

    /// The fields of an object, with those inside them.
    fn rows(&self, schema: &'s Value, prefix: &str) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let shapes = self.shapes(schema);
        // Of several alternatives, none is required.
        let is_choice = shapes.iter().filter(|shape| shape["properties"].is_object()).count() > 1;
        for shape in shapes {
            let required: Vec<&str> =
                shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, field) in shape["properties"].as_object().into_iter().flatten() {
                let full = format!("{prefix}{name}");
                let is_new = !rows.iter().any(|row| row.name == full);
                if is_new && field != &Value::Bool(false) {
                    rows.extend(self.field(&full, field, !is_choice && required.contains(&name.as_str())));
                }
            }
        }
        rows
    }

    fn field(&self, name: &str, field: &'s Value, required: bool) -> Vec<Row> {
        let target = self.resolved(field);
        let default = field.get("default").filter(|value| !value.is_object()).map(ToString::to_string);
        let meaning = description(field).or_else(|| description(target)).unwrap_or_default();
        let mut rows =
            vec![Row { name: name.to_owned(), kind: self.kind(field), required, default, meaning }];
        let has_section = field["$ref"].as_str().is_some_and(|link| section(link).is_some())
            || field["items"]["$ref"].as_str().is_some_and(|link| section(link).is_some());
        if !has_section {
            rows.extend(self.rows(field, &format!("{name}.")));
            for shape in self.shapes(field) {
                rows.extend(self.rows(&shape["items"], &format!("{name}[].")));
                if shape["additionalProperties"].get("$ref").is_none() {
                    rows.extend(self.rows(&shape["additionalProperties"], &format!("{name}.NAME.")));
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert(row.name.clone()));
        rows
    }

    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let pointer = schema["$ref"].as_str().and_then(|link| link.strip_prefix('#'));
        pointer.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }

    /// The alternatives of a schema that are no templates.
    fn shapes(&self, schema: &'s Value) -> Vec<&'s Value> {
        let schema = self.resolved(schema);
        let alternatives = ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        let inner =
            alternatives.filter(|shape| shape["pattern"] != TEMPLATE).flat_map(|shape| self.shapes(shape));
        std::iter::once(schema).chain(inner).collect()
    }

    /// What a value may be, in words.
    fn kind(&self, schema: &'s Value) -> String {
        if let Some(section) = schema["$ref"].as_str().and_then(section) {
            return section;
        }
        let mut words: Vec<String> =
            self.shapes(schema).into_iter().flat_map(|shape| self.words(shape)).collect();
        words.dedup();
        let mut seen = std::collections::BTreeSet::new();
        words.retain(|word| seen.insert(word.clone()));
        words.join(" or ")
    }

    fn words(&self, shape: &'s Value) -> Vec<String> {
        if let Some(choices) = shape["enum"].as_array() {
            let choices: Vec<String> =
                choices.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
            return vec![choices.join(", ")];
        }
        if let Some(word) = shape["const"].as_str() {
            return vec![format!("`{word}`")];
        }
        if shape["examples"]
            .as_array()
            .is_some_and(|examples| examples.iter().any(|example| example == "30s"))
        {
            return vec!["duration".to_owned()];
        }
        let types: Vec<&str> = match &shape["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return Vec::new(),
        };
        if types == ["string", "number", "boolean"] {
            return vec!["text".to_owned()];
        }
        let is_template =
            |name: &&&str| **name == "string" && types.len() > 1 && shape["pattern"] == TEMPLATE;
        let types = types.iter().filter(|name| **name != "null").filter(|name| !is_template(name));
        types.map(|name| self.word(name, shape)).collect()
    }

    fn word(&self, name: &str, shape: &'s Value) -> String {
        let range = match (shape["minimum"].as_f64(), shape["maximum"].as_f64()) {
            (Some(minimum), Some(maximum)) => format!(" from {minimum} to {maximum}"),
            (Some(minimum), None) => format!(" from {minimum}"),
            (None, Some(maximum)) => format!(" to {maximum}"),
            (None, None) => String::new(),
        };
        match name {
            "array" => match self.kind(&shape["items"]) {
                items if items.is_empty() => "list".to_owned(),
                items => format!("list of {items}"),
            },
            "object" if shape["format"] == "date-time" => "instant".to_owned(),
            "object" => "mapping".to_owned(),
            "string" if shape["format"] == "date-time" => "instant".to_owned(),
            name => format!("{name}{range}"),
        }
    }
}

/// The section that a reference leads to, as a link.
fn section(link: &str) -> Option<String> {
    let name = link.rsplit('/').next()?;
    let (_, title) = SECTIONS.iter().find(|(section, _)| *section == name)?;
    let words = title.to_lowercase();
    Some(format!("[{words}](#{})", words.replace(' ', "-")))
}

fn description(schema: &Value) -> Option<String> {
    schema["description"].as_str().map(str::to_owned)
}
