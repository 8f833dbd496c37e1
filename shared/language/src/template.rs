//! Templates: `{{ … }}` in Jinja's syntax, checked at definition and rendered at dispatch.
//!
//! A template can neither run for ever nor grow without bound: steps and output are limited while it runs;
//! what could multiply a value before that (assignments, macros, repeating texts) is no part of the language.
//!
//! An [`expression`] stands without braces where a value is wanted and no text: the same language, the same limits.
//!
//! Programs are no templates: braces mean something else there. Of a command line only the expressions that begin
//! with one of our names are ours, and what they give reaches the command as environment.

mod braces;
mod call;
mod check;
mod command;
mod dates;
mod depth;
mod engine;
pub mod expression;
mod filters;
mod load;
mod names;
mod render;
mod scope;
mod secrets;
mod shell;
mod syntax;
mod try_out;
mod walk;

pub use call::render_call;
pub(crate) use check::{check, check_config, check_expression, check_word};
pub(crate) use command::render_config;
pub(crate) use names::Names;
pub use render::{RenderError, render};
pub use scope::{Item, RunFacts, Scope, TaskFacts};
pub use secrets::{outputs_of, secrets_of};
pub(crate) use syntax::is_template;
pub use try_out::{ExpressionError, try_out};

/// Whether there is no template anywhere in a value: rendering it would change nothing.
pub fn is_plain(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::String(text) => !is_template(text),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => fields.values().all(is_plain),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
