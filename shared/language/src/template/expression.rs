//! Expressions: what stands without braces in `when`, in `cases`, in `for_each` and in the config of a `transform`.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::render::{RenderError, Renderer};
use super::scope::Scope;
use super::syntax::{self, Reference};

/// The maximum number of characters of a value that is shown.
const MAX_PREVIEW_CHARS: usize = 200;

/// What came of an expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluated {
    /// Its value, with its type.
    pub value: Value,
    /// Whether that counts as true: nothing, `false`, zero and what is empty do not.
    pub truth: bool,
    /// The names that it uses and what they stood for, as far as they existed; what is long is shortened.
    pub seen: Map<String, Value>,
}

/// Evaluates an expression, within the limits of a template.
pub fn evaluate(source: &str, scope: &Scope) -> Result<Evaluated, RenderError> {
    let mut renderer = Renderer::without_secrets(scope);
    let (value, references) = renderer.evaluate(source).map_err(|failure| failure.at(String::new()))?;
    Ok(Evaluated { truth: is_true(&value), seen: seen(&renderer, &references), value })
}

/// What names stand for, as far as they exist.
pub(super) fn seen(renderer: &Renderer<'_>, references: &[Reference]) -> Map<String, Value> {
    let seen = references.iter().filter_map(|reference| {
        let value = renderer.resolve(&reference.path).ok()?;
        Some((written(&reference.path), shortened(value)))
    });
    seen.collect()
}

/// The truth of an expression that uses no names, and so is the same in every run.
pub(crate) fn constant(source: &str) -> Option<bool> {
    let names_nothing = syntax::parse_expression(source).is_ok_and(|parsed| parsed.references.is_empty());
    let evaluated = names_nothing.then(|| evaluate(source, &Scope::default()).ok())?;
    evaluated.map(|evaluated| evaluated.truth)
}

/// Whether a value counts as true.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

/// A path as one writes it: `outputs['get-data'][0].rows`.
fn written(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        let word = part.chars().all(|c| c.is_alphanumeric() || c == '_');
        match part.parse::<i64>() {
            Ok(index) => text += &format!("[{index}]"),
            Err(_) if !word => text += &format!("['{part}']"),
            Err(_) if text.is_empty() => text += part,
            Err(_) => text += &format!(".{part}"),
        }
    }
    text
}

/// A value that is short enough to be shown; the beginning of what is not.
fn shortened(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => beginning(other),
    };
    match text.char_indices().nth(MAX_PREVIEW_CHARS) {
        None => value.clone(),
        Some(_) => text.chars().take(MAX_PREVIEW_CHARS - 1).chain(['…']).collect::<String>().into(),
    }
}

/// As much of a value's JSON as can be shown, and a little more where there is more.
fn beginning(value: &Value) -> String {
    let mut written = Beginning(Vec::new());
    // The only failure is that there is more than fits, which shows in the length.
    drop(serde_json::to_writer(&mut written, value));
    String::from_utf8_lossy(&written.0).into_owned()
}

/// A buffer that keeps what comes first, so that a large value costs no more than a small one.
struct Beginning(Vec<u8>);

impl Beginning {
    /// No character of UTF-8 takes more than four bytes.
    const LIMIT: usize = (MAX_PREVIEW_CHARS + 1) * 4;
}

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(Self::LIMIT - self.0.len());
        self.0.extend_from_slice(&bytes[..fits]);
        if fits == 0 && !bytes.is_empty() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
