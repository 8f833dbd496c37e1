//! Task types that users declare: what a version keeps of each type that it uses.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::{TaskKind, Workflow};

/// The name of a custom task type, such as `raster.validate`. Copies share the text, so a task's type costs no allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeName(Arc<str>);

impl TypeName {
    /// The same rule as a regular expression, for schemas.
    pub const PATTERN: &str = "^[a-z0-9_-]+(\\.[a-z0-9_-]+)+$";

    /// The maximum length of a name.
    pub const MAX_CHARS: usize = 100;

    /// The name, if it is one: two or more words of lowercase letters, digits, `-` and `_`, with dots between them.
    pub fn new(name: &str) -> Option<Self> {
        let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_letter);
        let fits = name.len() <= Self::MAX_CHARS && name.contains('.') && name.split('.').all(is_word);
        fits.then(|| Self(name.into()))
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for TypeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name)
            .ok_or_else(|| de::Error::custom(format!("`{name}` is not the name of a custom task type")))
    }
}

/// A task type as a file in `types/` declares it. It is part of every version that uses it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CustomType {
    /// A description of the type for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A sign for graphs and lists: a letter or an emoji.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The JSON Schema of the settings, after rendering.
    pub config: Value,
    /// The JSON Schema of the output; any output is accepted if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The queue of tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How long an attempt may take, unless the task says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The number of retries, unless the task says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
}

impl Workflow {
    /// The custom type of a task; none if the task's type is built in.
    pub fn custom_type(&self, kind: &TaskKind) -> Option<(&TypeName, &CustomType)> {
        let TaskKind::Custom(name) = kind else { return None };
        self.types.get_key_value(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_dot_and_no_odd_letters() {
        for name in ["raster.validate", "a.b.c", "my-team.load_2"] {
            assert_eq!(TypeName::new(name).unwrap().as_str(), name);
        }
        let long = format!("a.{}", "b".repeat(99));
        for name in ["", "noop", ".", "a.", ".b", "a..b", "A.b", "a b.c", "a/b.c", &long] {
            assert_eq!(TypeName::new(name), None, "{name}");
        }
    }
}
