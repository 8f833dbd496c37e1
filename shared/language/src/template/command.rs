//! Rendering a config with programs in it: their text stays, and values reach command lines as environment.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::render::{Failure, RenderError, Renderer};
use super::scope::Scope;
use super::{shell, syntax};
use crate::node::{Path, Step};
use crate::types::{Dialect, TaskType};

/// Renders a config as its task type wants it: URLs encoded, programs as they are written.
pub(crate) fn render_config(config: &Value, scope: &Scope, kind: &TaskType) -> Result<Value, RenderError> {
    let mut renderer = Renderer::new(scope, kind.urls);
    let Value::Object(settings) = config else { return renderer.value(config, &Path::default()) };
    let mut rendered = Map::new();
    for (name, setting) in settings.iter().filter(|(name, _)| kind.dialect(name).is_none()) {
        rendered
            .insert(name.clone(), renderer.value(setting, &Path::default().to(Step::Entry(name.clone())))?);
    }
    for (name, program) in settings {
        match (kind.dialect(name), program) {
            (Some(Dialect::Shell), Value::String(text)) => {
                let line = command(text, settings.get("env"), &mut rendered, &mut renderer);
                rendered.insert(name.clone(), line.map_err(|failure| failure.at(name.clone()))?.into());
            }
            (Some(_), _) => drop(rendered.insert(name.clone(), program.clone())),
            (None, _) => {}
        }
    }
    Ok(Value::Object(rendered))
}

/// A command line with variables in place of its expressions, which are added to the settings' `env`.
fn command(
    text: &str,
    variables: Option<&Value>,
    settings: &mut Map<String, Value>,
    renderer: &mut Renderer<'_>,
) -> Result<String, Failure> {
    let shell::Line { slots, computed } = shell::read(text);
    let refused = |refusal: shell::Refusal| Failure(refusal.message(), Some(refusal.hint().to_owned()));
    for name in computed {
        let is_template = variables.and_then(|all| all.get(&name)?.as_str()).is_some_and(syntax::is_template);
        let value = settings.get("env").and_then(|env| env.get(&name));
        if is_template && !value.is_some_and(shell::is_number) {
            return Err(refused(shell::Refusal::Computed));
        }
    }
    let taken = |name: &String| settings.get("env").is_some_and(|env| env.get(name).is_some());
    let mut names = (1..).map(|number| format!("EBB_VALUE_{number}")).filter(|name| !taken(name));
    let (mut line, mut done, mut values) = (String::new(), 0, BTreeMap::new());
    for slot in slots {
        let quoting = slot.quoting.map_err(refused)?;
        let name = names.next().expect("numbers do not end");
        line += &text[done..slot.span.start];
        line += &quoting.reference(&name);
        done = slot.span.end;
        let value = renderer.text(&text[slot.span], "")?;
        if slot.is_computed && !shell::is_number(&value) {
            return Err(refused(shell::Refusal::Computed));
        }
        values.insert(name, as_text(value));
    }
    line += &text[done..];
    drop(names);
    add(values, settings);
    Ok(line)
}

fn add(values: BTreeMap<String, Value>, settings: &mut Map<String, Value>) {
    if values.is_empty() {
        return;
    }
    let env = settings.entry("env").or_insert(Value::Null);
    if env.is_null() {
        *env = Value::Object(Map::new());
    }
    // An `env` of any other kind is refused when the config is read.
    if let Value::Object(env) = env {
        env.extend(values);
    }
}

/// A text as it is, anything else as JSON.
fn as_text(value: Value) -> Value {
    match value {
        Value::String(_) => value,
        other => Value::String(other.to_string()),
    }
}
