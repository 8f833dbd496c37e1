//! Refuses a list where an object belongs. Serde would take the elements of a list for the fields of an object, in their
//! order, so that `{"filter": []}` would be a filter that everything passes.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Error, Value};

/// Checks a text that can be read as a `T`: each of its objects is written as one.
pub(super) fn check<T: DeserializeOwned>(text: &str) -> Result<(), Error> {
    if !text.contains('[') {
        return Ok(());
    }
    let value: Value = serde_json::from_str(text)?;
    T::deserialize(Strict(&value)).map(drop)
}

/// A value that is read as an object only if it is one.
struct Strict<'v>(&'v Value);

impl<'de> Deserializer<'de> for Strict<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Strict))),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.as_str(), Strict(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'v> IntoDeserializer<'v, Error> for Strict<'v> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields, default)]
    #[derive(Default)]
    struct Body {
        reason: Option<String>,
        filter: Option<Filter>,
        labels: BTreeMap<String, f64>,
        items: Vec<Filter>,
        any: Value,
    }

    #[derive(Deserialize, Debug, Default)]
    #[serde(default)]
    struct Filter {
        state: String,
    }

    #[test]
    fn a_list_is_no_object() {
        for text in ["[]", r#"["x"]"#, r#"{"filter": []}"#, r#"{"items": [[]]}"#, r#"{"items": [{}, ["x"]]}"#]
        {
            assert!(serde_json::from_str::<Body>(text).is_ok(), "serde reads {text}");
            let error = check::<Body>(text).expect_err(text);
            assert!(error.to_string().starts_with("invalid type: sequence, expected struct"), "{error}");
        }
        for text in [
            "{}",
            r#"{"reason": null, "filter": {"state": "failed"}, "labels": {"a": 1.5}, "items": [{}], "any": [[1], {"a": []}]}"#,
        ] {
            check::<Body>(text).expect(text);
        }
    }
}
