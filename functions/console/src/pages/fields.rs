//! Forms made from typed inputs.

use api::approvals::{ApprovalForm, FormField};
use host::Problem;
use model::{InputSpec, InputType};
use serde_json::{Map, Value};

use crate::sent::Sent;
use crate::show;

/// One field of a form.
pub(crate) struct Field {
    /// Its name in the form.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) kind: InputType,
    pub(crate) hint: String,
    pub(crate) required: bool,
    pub(crate) value: String,
    pub(crate) choices: Vec<String>,
    /// What is wrong with it.
    pub(crate) wrong: Option<String>,
}

impl Field {
    /// The field of an input, filled in with its default if that is a plain value.
    pub(crate) fn of_input(input: &InputSpec) -> Self {
        let default = input.default.as_ref().map(written);
        let is_template = default.as_ref().is_some_and(|text| text.contains("{{"));
        let hint = match (&input.description, &default) {
            (Some(words), _) => words.clone(),
            (None, Some(text)) if is_template => format!("default: {text}"),
            _ => String::new(),
        };
        Self {
            id: format!("input.{}", input.name),
            label: input.name.clone(),
            kind: input.kind,
            hint,
            required: input.default.is_none(),
            value: default.filter(|_| !is_template).unwrap_or_default(),
            choices: input.choices.iter().map(written).collect(),
            wrong: None,
        }
    }

    /// The fields that an approval asks for.
    pub(crate) fn of_approval(form: &ApprovalForm) -> Vec<Self> {
        let field = |field: FormField| Self {
            id: format!("input.{}", field.name),
            label: field.name,
            kind: field.kind,
            hint: field.description.unwrap_or_default(),
            required: field.required,
            value: String::new(),
            choices: Vec::new(),
            wrong: None,
        };
        form.fields().into_iter().map(field).collect()
    }

    /// The same with the values that were sent.
    pub(crate) fn with_sent(mut self, sent: &Sent) -> Self {
        match sent.raw(&self.id) {
            Some(value) => self.value = value.to_owned(),
            // A box that is not ticked sends nothing.
            None if self.kind == InputType::Boolean => self.value = "false".into(),
            None => {}
        }
        self
    }

    /// The kind of `input` that suits it; none where it is a larger text.
    pub(crate) fn control(&self) -> &'static str {
        match self.kind {
            InputType::Integer | InputType::Number => "number",
            InputType::Boolean => "checkbox",
            InputType::Date => "date",
            InputType::List | InputType::Object => "",
            InputType::String | InputType::Datetime => "text",
        }
    }

    /// What its type is called.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            InputType::String => "text",
            InputType::Integer => "whole number",
            InputType::Number => "number",
            InputType::Boolean => "yes or no",
            InputType::Date => "day",
            InputType::Datetime => "instant, such as 2026-01-31T18:00:00Z",
            InputType::List => "list, as JSON",
            InputType::Object => "object, as JSON",
        }
    }
}

fn written(value: &Value) -> String {
    if value.is_array() || value.is_object() { show::editable(value) } else { show::value(value) }
}

/// The values of these inputs in a form, which has these other fields. A value that cannot be parsed is passed on as text, so that
/// the API reports it.
pub(crate) fn values(
    kinds: Vec<(String, InputType)>,
    others: &[&str],
    sent: &Sent,
) -> Result<Map<String, Value>, Problem> {
    let names: Vec<String> = kinds.iter().map(|(name, _)| format!("input.{name}")).collect();
    sent.only(names.iter().map(String::as_str).chain(others.iter().copied()))?;
    let mut values = Map::new();
    for (name, kind) in kinds {
        let given = sent.field(&format!("input.{name}"));
        let value = match (kind, given) {
            (InputType::Boolean, given) => Some(Value::Bool(given == Some("true"))),
            (InputType::String | InputType::Date | InputType::Datetime, given) => given.map(Value::from),
            (_, given) => given.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
        };
        values.extend(value.map(|value| (name, value)));
    }
    Ok(values)
}
