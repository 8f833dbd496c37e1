//! A document as a tree in which everything has a position.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

/// Where something was written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The file's index among those compiled together.
    pub(crate) file: usize,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The byte at which it begins.
    pub(crate) offset: usize,
    /// The path in the file, such as `tasks[2].depends_on[0]`.
    pub(crate) path: Path,
}

impl Position {
    /// The same path, at another byte of the file whose text is given.
    pub(crate) fn moved_to(&self, text: &str, offset: usize) -> Self {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
            offset,
            ..self.clone()
        }
    }
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value itself, without its position.
    pub data: Data,
    /// Where it was written.
    pub at: Position,
}

/// What a node holds: JSON's values, with the order of mappings kept.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are JSON's own")]
pub enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A mapping's key and where it was written.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key as written.
    pub name: String,
    /// Where it was written.
    pub at: Position,
}

impl Node {
    /// A tree without positions, for values that come from no file.
    pub(crate) fn from_json(value: &Value) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(flag) => Data::Bool(*flag),
            Value::Number(number) => Data::Number(number.clone()),
            Value::String(text) => Data::Text(text.clone()),
            Value::Array(items) => Data::List(items.iter().map(Self::from_json).collect()),
            Value::Object(entries) => {
                let key = |name: &String| Key { name: name.clone(), at: Position::default() };
                Data::Map(entries.iter().map(|(name, value)| (key(name), Self::from_json(value))).collect())
            }
        };
        Self { data, at: Position::default() }
    }

    /// The value without positions.
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(flag) => Value::Bool(*flag),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Map(entries) => {
                let pairs = entries.iter().map(|(key, node)| (key.name.clone(), node.to_json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// The value in words, for messages.
    pub fn describe(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(flag) => format!("`{flag}`"),
            Data::Number(number) => format!("the number {number}"),
            Data::Text(text) if text.is_empty() => "an empty text".to_owned(),
            Data::Text(text) => match text.char_indices().nth(40) {
                Some((end, _)) => format!("the text `{}…`", text[..end].escape_debug()),
                None => format!("the text `{}`", text.escape_debug()),
            },
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a mapping".to_owned(),
        }
    }

    /// Sets the file and the path of this node and of all below it.
    pub(crate) fn locate(&mut self, file: usize, path: Path) {
        match &mut self.data {
            Data::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    item.locate(file, path.to(Step::Item(index)));
                }
            }
            Data::Map(entries) => {
                for (key, value) in entries {
                    let inner = path.to(Step::Entry(key.name.clone()));
                    key.at.file = file;
                    key.at.path = inner.clone();
                    value.locate(file, inner);
                }
            }
            _ => {}
        }
        self.at.file = file;
        self.at.path = path;
    }
}

/// The path of a value in its file, such as `tasks[2].depends_on[0]`; empty for the whole of it. What is in the same mapping
/// or list shares the path to it: each written out, those of a file with a long key would take the square of its size.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Path(Option<Arc<(Path, Step)>>);

/// The last part of a path.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Item(usize),
    Entry(String),
}

impl Path {
    /// The path of what is one step below.
    pub(crate) fn to(&self, step: Step) -> Self {
        Self(Some(Arc::new((self.clone(), step))))
    }

    /// Whether it is that of the whole file.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is `other`, or the path of something in it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let above = |path: &Self| path.0.as_ref().map(|parts| parts.0.clone());
        std::iter::successors(Some(self.clone()), above).any(|path| path == *other)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_deref() {
            None => Ok(()),
            Some((above, Step::Item(index))) => write!(f, "{above}[{index}]"),
            Some((above, Step::Entry(name))) => {
                write!(f, "{above}")?;
                enter(f, above.is_empty(), name)
            }
        }
    }
}

/// The path of a mapping's entry.
pub(crate) fn join(path: &str, name: &str) -> String {
    let mut joined = path.to_owned();
    // A text takes everything.
    let _ = enter(&mut joined, path.is_empty(), name);
    joined
}

/// Adds the name of a mapping's entry to a path; names that would be hard to read after a dot go into brackets.
fn enter(path: &mut impl fmt::Write, is_first: bool, name: &str) -> fmt::Result {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (is_first, plain) {
        (true, true) => path.write_str(name),
        (false, true) => write!(path, ".{name}"),
        (_, false) => write!(path, "[{name:?}]"),
    }
}
