//! Rendering: every string of a config, in a scope, within limits.

use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value as Jinja};
use serde_json::Value;

use super::engine::{self, PLAIN, URL};
use super::filters::{Bounded, MAX_BYTES, json};
use super::scope::Scope;
use super::syntax::{self, Reference, Template, is_template};
use crate::node::{Path, Step};
use crate::suggest;

/// Why a config could not be rendered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{message}{}", prefix(path), suffix(hint))]
pub struct RenderError {
    /// The place in the config, such as `headers.X-Day`; empty for the whole of it.
    pub path: String,
    /// The reason, in a sentence.
    pub message: String,
    /// How to put it right.
    pub hint: Option<String>,
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

fn suffix(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default()
}

/// Renders every string in a value. A string that is one `{{ expression }}` becomes the expression's value,
/// with its type.
pub fn render(config: &Value, scope: &Scope) -> Result<Value, RenderError> {
    Renderer::new(scope, &[]).value(config, &Path::default())
}

pub(super) struct Renderer<'u> {
    names: Value,
    context: Jinja,
    /// The top-level settings in which values are percent-encoded.
    urls: &'u [&'u str],
    /// Bytes that may still be written.
    left: usize,
}

impl<'u> Renderer<'u> {
    pub(super) fn new(scope: &Scope, urls: &'u [&'u str]) -> Self {
        let mut names = scope.to_json();
        if !scope.secrets.is_empty() {
            names["secrets"] = Value::Object(scope.secrets.clone());
        }
        Self { context: Jinja::from(Serde(&names)), names, urls, left: MAX_BYTES }
    }

    /// One that knows no secrets, since what it works with is shown.
    pub(super) fn without_secrets(scope: &Scope) -> Self {
        let names = scope.to_json();
        Self { context: Jinja::from(Serde(&names)), names, urls: &[], left: MAX_BYTES }
    }

    pub(super) fn value(&mut self, value: &Value, path: &Path) -> Result<Value, RenderError> {
        match value {
            Value::String(text) if is_template(text) => {
                let path = path.to_string();
                self.text(text, &path).map_err(|error| error.at(path))
            }
            Value::Array(items) => {
                let each = items.iter().enumerate();
                each.map(|(index, item)| self.value(item, &path.to(Step::Item(index)))).collect()
            }
            Value::Object(entries) => {
                let each = entries.iter().map(|(name, value)| {
                    let path = path.to(Step::Entry(name.clone()));
                    Ok((name.clone(), self.value(value, &path)?))
                });
                each.collect()
            }
            other => Ok(other.clone()),
        }
    }

    /// One text that is a template, at a path.
    pub(super) fn text(&mut self, source: &str, path: &str) -> Result<Value, Failure> {
        let template = syntax::parse(source).map_err(|problem| Failure(problem.message, problem.hint))?;
        self.check_factors(&template)?;
        let fuel = self.fuel(source, &template)?;
        let result = match template.is_expression {
            true => self.expression(within_braces(source)),
            false if self.urls.contains(&path) => self.url(source, &template, fuel),
            false => self.insert(source, &PLAIN, fuel).map(Value::String),
        };
        result.map_err(|error| self.explain(&error, &template))
    }

    /// One expression without braces, and the names that it uses.
    pub(super) fn evaluate(&mut self, source: &str) -> Result<(Value, Vec<Reference>), Failure> {
        let parsed =
            syntax::parse_expression(source).map_err(|problem| Failure(problem.message, problem.hint))?;
        self.check_factors(&parsed)?;
        self.fuel(source, &parsed)?;
        let value = self.expression(source).map_err(|error| self.explain(&error, &parsed))?;
        Ok((value, parsed.references))
    }

    fn expression(&mut self, source: &str) -> Result<Value, Error> {
        let value = PLAIN.compile_expression(source)?.eval(&self.context)?;
        let bytes = json(&value, self.left)?;
        self.left -= bytes.len();
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
    }

    /// A URL may begin with an expression, which then holds its scheme and host and is left as it is.
    fn url(&mut self, source: &str, template: &Template, fuel: u64) -> Result<Value, Error> {
        let (head, tail) = source.split_at(template.head.unwrap_or_default());
        Ok(Value::String(self.insert(head, &PLAIN, fuel)? + &self.insert(tail, &URL, fuel)?))
    }

    fn insert(
        &mut self,
        source: &str,
        environment: &Environment<'static>,
        fuel: u64,
    ) -> Result<String, Error> {
        let mut written = Bounded::new(self.left);
        let environment = engine::with_fuel(environment, fuel);
        environment.template_from_str(source)?.render_captured_to(&self.context, &mut written)?;
        let text = written.into_text().ok_or(Error::from(ErrorKind::WriteFailure))?;
        self.left -= text.len();
        Ok(text)
    }

    /// The steps that a template may take over the values that it works on.
    fn fuel(&self, source: &str, template: &Template) -> Result<u64, Failure> {
        let values = template.references.iter().filter_map(|reference| {
            self.resolve(&reference.path).ok().map(|value| (reference.counts, value))
        });
        template.load.fuel(source, values).ok_or_else(|| {
            let hint = Some("store large data elsewhere and pass a reference to it".to_owned());
            Failure("its operators work on values that are too large".to_owned(), hint)
        })
    }

    fn check_factors(&self, template: &Template) -> Result<(), Failure> {
        let mut factors = template.references.iter().filter(|reference| reference.factor);
        factors.try_for_each(|factor| self.multiply(factor, template))
    }

    /// Repeating texts and lists is no part of the language: a short template could make a huge value.
    fn multiply(&self, factor: &Reference, template: &Template) -> Result<(), Failure> {
        match self.resolve(&factor.path) {
            Ok(Value::Number(_) | Value::Bool(_) | Value::Null) => Ok(()),
            Ok(_) => {
                let message =
                    format!("`*` multiplies numbers, and `{}` is not a number", factor.path.join("."));
                Err(Failure(message, Some("make it a number first: `value | float`".to_owned())))
            }
            Err(_) => Err(self.explain_missing(template)),
        }
    }

    /// What a path leads to, or how far it leads.
    pub(super) fn resolve(&self, path: &[String]) -> Result<&Value, usize> {
        let mut value = &self.names;
        for (depth, part) in path.iter().enumerate() {
            value = match value {
                Value::Array(items) => part.parse().ok().and_then(|index| item(items, index)),
                other => other.get(part),
            }
            .ok_or(depth)?;
        }
        Ok(value)
    }

    fn explain(&self, error: &Error, template: &Template) -> Failure {
        match error.kind() {
            ErrorKind::OutOfFuel => {
                let hint = template
                    .load
                    .repeats
                    .then(|| "loops take fewer where operators work on large values".to_owned());
                Failure("it takes too many steps".to_owned(), hint)
            }
            ErrorKind::WriteFailure => {
                let hint = Some("store large data elsewhere and pass a reference to it".to_owned());
                Failure(format!("the result is larger than {MAX_BYTES} bytes"), hint)
            }
            ErrorKind::UndefinedError => self.explain_missing(template),
            // The reason may quote the value, and reasons are stored.
            _ if template.uses("secrets") => {
                let hint = Some("look at what the template does with the secret's value".to_owned());
                Failure("it cannot be rendered; why is not shown, since it uses a secret".to_owned(), hint)
            }
            _ => Failure(error.detail().map_or_else(|| error.to_string(), str::to_owned), None),
        }
    }

    /// The first reference that leads nowhere, and how far it leads.
    pub(super) fn missing<'t>(&self, template: &'t Template) -> Option<(&'t Reference, usize)> {
        template.references.iter().find_map(|reference| {
            let depth = self.resolve(&reference.path).err()?;
            let excused = reference.guarded && depth + 1 == reference.path.len();
            (!excused).then_some((reference, depth))
        })
    }

    /// Names the first reference that leads nowhere.
    pub(super) fn explain_missing(&self, template: &Template) -> Failure {
        let Some((Reference { path, .. }, depth)) = self.missing(template) else {
            return Failure("a value that it uses does not exist".to_owned(), None);
        };
        let known = self.resolve(&path[..depth]).ok().and_then(Value::as_object);
        let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let name = &path[depth];
        match (path[..depth].join("."), path[0].as_str()) {
            (_, "outputs") if depth == 1 => {
                let hint = format!(
                    "is `{name}` upstream, and did it succeed? For a default: `(outputs['{name}'] | default({{}}))`"
                );
                Failure(format!("there is no output of a task `{name}`"), Some(hint))
            }
            (owner, _) if owner.is_empty() => {
                Failure(format!("the name `{name}` does not exist here"), suggest::hint(name, names))
            }
            (owner, _) => {
                let hint = suggest::hint(name, names).unwrap_or("for a default: `| default('…')`".to_owned());
                Failure(format!("`{owner}` has no `{name}`"), Some(hint))
            }
        }
    }
}

/// The expression of a template that is nothing else.
fn within_braces(source: &str) -> &str {
    let source = source.trim_end_matches('\n');
    let inner = source.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(source);
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner)
}

/// The item at an index, which counts from the end if it is negative.
fn item(items: &[Value], index: isize) -> Option<&Value> {
    let place = if index < 0 { items.len().checked_add_signed(index) } else { usize::try_from(index).ok() };
    items.get(place?)
}

/// A message and a hint, before it is known where.
pub(super) struct Failure(pub(super) String, pub(super) Option<String>);

impl Failure {
    pub(super) fn at(self, path: String) -> RenderError {
        RenderError { path, message: self.0, hint: self.1 }
    }
}
