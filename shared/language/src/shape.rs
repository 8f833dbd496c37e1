//! What a value may be. One description gives three things: how the value is read, what is reported if it does not
//! fit, and the JSON Schema that editors use.
//!
//! A [`Shape`] describes one value, a [`Record`] a mapping with fixed fields. [`record!`] declares a record as a struct:
//! the doc comment of each field is the sentence that editors and the reference show.

mod kinds;

use serde_json::{Map, Value, json};

use crate::diagnostic::Report;
use crate::node::Node;
use crate::read::Fields;

pub use kinds::Given;
pub(crate) use kinds::*;

/// A description of a value.
pub trait Shape<'n> {
    /// What the value is read as.
    type Value;

    /// Reads the value; why it does not fit is reported.
    fn read(&self, node: &'n Node, report: &mut Report<'_>) -> Option<Self::Value>;

    /// The JSON Schema of the value.
    fn schema(&self) -> Value;

    /// Whether a record needs the field.
    fn is_required(&self) -> bool {
        false
    }

    /// Whether `null` is a value of its own; otherwise the field counts as absent.
    fn takes_null(&self) -> bool {
        false
    }
}

/// A mapping with fixed fields. Declared by `record!`.
pub trait Record<'n>: Sized {
    /// What messages call it, such as "a retry policy".
    const WHAT: &'static str;

    /// Reads every field of the record from a mapping that may have others too.
    fn take(fields: &mut Fields<'n>, report: &mut Report<'_>) -> Self;

    /// Appends the fields of the record.
    fn describe(fields: &mut Vec<Field>);

    /// What the JSON Schema requires beyond the fields, such as which of them exclude each other.
    fn rules() -> Value {
        json!({})
    }

    /// The fields that are set here, and the other's fields where they are not.
    #[must_use]
    fn or(self, other: Self) -> Self;

    /// Reads a mapping that has these fields and no others.
    fn read(node: &'n Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, Self::WHAT, report)?;
        let record = Self::take(&mut fields, report);
        fields.finish(report);
        Some(record)
    }

    /// The JSON Schemas of the fields, by name, each with its description.
    fn properties() -> Map<String, Value> {
        let mut fields = Vec::new();
        Self::describe(&mut fields);
        let property = |field: Field| (field.name.to_owned(), described(field.description, field.schema));
        fields.into_iter().map(property).collect()
    }

    /// The JSON Schema of the record.
    fn schema() -> Value {
        let mut fields = Vec::new();
        Self::describe(&mut fields);
        let required: Vec<&str> =
            fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
        let mut schema = object(Self::properties(), &required);
        let rules = Self::rules();
        for (key, rule) in rules.as_object().into_iter().flatten() {
            schema[key] = rule.clone();
        }
        schema
    }
}

/// One field of a record.
pub struct Field {
    /// Its key in the mapping.
    pub name: &'static str,
    /// The sentence that explains it.
    pub description: &'static str,
    /// The JSON Schema of its value.
    pub schema: Value,
    /// Whether the record needs it.
    pub is_required: bool,
}

/// Declares a record: a struct whose every field is an `Option`, with the shape of the field after `=`. A field that is
/// a keyword in Rust is written as `r#type`. Records after `..` contribute their fields to the same mapping. The
/// expression after `where` gives the rules of the JSON Schema.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? as $what:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $shape:expr,
            )*
            $(..$part:ident: $part_type:ty,)*
        }
        $(where $rules:expr)?
    ) => {
        $(#[$attribute])*
        $vis struct $name $(<$life>)? {
            $($(#[doc = $doc])+ $vis $field: Option<$type>,)*
            $(
                /// Fields that other records have too.
                $vis $part: $part_type,
            )*
        }

        impl<'n> $crate::shape::Record<'n> for $name $(<$life>)? {
            const WHAT: &'static str = $what;

            fn take(
                fields: &mut $crate::read::Fields<'n>,
                report: &mut $crate::diagnostic::Report<'_>,
            ) -> Self {
                Self {
                    $($field: fields.take($crate::shape::key(stringify!($field)), &$shape, report),)*
                    $($part: <$part_type as $crate::shape::Record<'n>>::take(fields, report),)*
                }
            }

            fn describe(fields: &mut Vec<$crate::shape::Field>) {
                $(
                    let name = $crate::shape::key(stringify!($field));
                    let description = concat!($($doc),+).trim();
                    fields.push($crate::shape::field::<$type>(name, description, &$shape));
                )*
                $(<$part_type as $crate::shape::Record<'n>>::describe(fields);)*
            }

            $(
                fn rules() -> serde_json::Value {
                    $rules
                }
            )?

            fn or(self, other: Self) -> Self {
                Self {
                    $($field: self.$field.or(other.$field),)*
                    $($part: $crate::shape::Record::or(self.$part, other.$part),)*
                }
            }
        }
    };
}
pub(crate) use record;

/// A field of a record whose value is a `T`.
pub(crate) fn field<'n, T>(
    name: &'static str,
    description: &'static str,
    shape: &impl Shape<'n, Value = T>,
) -> Field {
    Field { name, description, schema: shape.schema(), is_required: shape.is_required() }
}

/// The key of a field, whose name in Rust may be escaped.
pub(crate) fn key(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// A JSON Schema with a description.
pub(crate) fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

/// A mapping of these fields and no others.
pub(crate) fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// A reference to a schema that is defined once.
pub(crate) fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The rule that exactly one of the fields is given.
pub(crate) fn exactly_one(fields: &[&str]) -> Value {
    json!({"oneOf": fields.iter().map(|field| json!({"required": [field]})).collect::<Vec<_>>()})
}

/// The value of a field that is not allowed, depending on what else is given.
pub(crate) fn forbidden<'a>(fields: impl IntoIterator<Item = &'a str>) -> Map<String, Value> {
    fields.into_iter().map(|field| (field.to_owned(), false.into())).collect()
}
