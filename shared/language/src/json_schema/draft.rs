//! Schemas of partial files: a file that extends a template is merged over it, and a template is filled in later.
//!
//! Such a thing has the shape of the whole, with nothing required and gaps where values stand.

use serde_json::{Map, Value, json};

use super::values::{or_nothing, or_parameter};

/// How the schema of a whole becomes that of a part.
pub(super) struct Draft {
    /// Whether a value may be `${{ parameters.NAME }}`. It may always be nothing (`~`), which takes away what is
    /// inherited.
    pub(super) has_parameters: bool,
    /// Where the schemas of parts stand.
    pub(super) home: &'static str,
    /// What is replaced as a whole, and so refers to the schema of the whole.
    pub(super) whole: &'static [&'static str],
}

impl Draft {
    /// A value that may be a gap.
    pub(super) fn value(&self, schema: &Value) -> Value {
        or_nothing(self.item(schema))
    }

    /// An entry of a list, where nothing takes nothing away.
    pub(super) fn item(&self, schema: &Value) -> Value {
        let shape = self.shape(schema);
        if self.has_parameters { or_parameter(shape) } else { shape }
    }

    /// A schema whose parts may be gaps, and which is none itself.
    pub(super) fn shape(&self, schema: &Value) -> Value {
        let Value::Object(given) = schema else { return schema.clone() };
        let mut found = Map::new();
        for (key, inner) in given {
            let (key, inner) = match key.as_str() {
                "required" => continue,
                "$ref" => (key.as_str(), self.moved(inner)),
                "properties" => (key.as_str(), self.each(inner, Self::value)),
                "$defs" => (key.as_str(), self.each(inner, Self::shape)),
                "items" => (key.as_str(), self.item(inner)),
                "additionalProperties" => (key.as_str(), self.value(inner)),
                "then" => (key.as_str(), self.shape(inner)),
                "allOf" => (key.as_str(), self.shapes(inner).into()),
                "anyOf" | "oneOf" => match self.shapes(inner) {
                    // They differed only in what is required.
                    shapes if shapes.contains(&json!({})) => continue,
                    shapes => ("anyOf", shapes.into()),
                },
                other => (other, inner.clone()),
            };
            found.insert(key.to_owned(), inner);
        }
        found.into()
    }

    /// The same of each schema of a mapping.
    pub(super) fn each(&self, schemas: &Value, relax: impl Fn(&Self, &Value) -> Value) -> Value {
        let entries = schemas.as_object().into_iter().flatten();
        entries.map(|(name, schema)| (name.clone(), relax(self, schema))).collect::<Map<_, _>>().into()
    }

    fn shapes(&self, schemas: &Value) -> Vec<Value> {
        schemas.as_array().into_iter().flatten().map(|schema| self.shape(schema)).collect()
    }

    fn moved(&self, target: &Value) -> Value {
        let path = target.as_str().and_then(|target| target.strip_prefix("#/$defs/"));
        path.filter(|path| !self.whole.contains(path))
            .map_or_else(|| target.clone(), |path| format!("{}/{path}", self.home).into())
    }
}
