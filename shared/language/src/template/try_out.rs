//! Trying out an expression or a template: what comes of it, or what is wrong with it and where.

use std::ops::Range;

use super::expression::{Evaluated, is_true, seen};
use super::render::Renderer;
use super::scope::Scope;
use super::syntax::{self, is_template};

/// What is wrong with a text that was tried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionError {
    /// The problem, in a sentence.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The bytes of the text that it is about; all of them if that is not known.
    pub at: Range<usize>,
}

/// Evaluates an expression, or renders a text with braces in it. It knows no secrets, since what comes of it is shown.
pub fn try_out(source: &str, scope: &Scope) -> Result<Evaluated, ExpressionError> {
    let parse = if is_template(source) { syntax::parse } else { syntax::parse_expression };
    let template = parse(source).map_err(|problem| {
        let at = if problem.span.is_empty() { 0..source.len() } else { problem.span };
        ExpressionError { message: problem.message, hint: problem.hint, at: within(source, at) }
    })?;
    let mut renderer = Renderer::without_secrets(scope);
    let result = match is_template(source) {
        true => renderer.text(source, ""),
        false => renderer.evaluate(source).map(|(value, _)| value),
    };
    match result {
        Ok(value) => {
            Ok(Evaluated { truth: is_true(&value), seen: seen(&renderer, &template.references), value })
        }
        Err(failure) => {
            let missing = renderer.missing(&template).map(|(reference, _)| reference.span.clone());
            // A missing value is the cause, whatever the operator reports.
            let reported = if missing.is_some() { renderer.explain_missing(&template) } else { failure };
            let at = within(source, missing.unwrap_or(0..source.len()));
            Err(ExpressionError { message: reported.0, hint: reported.1, at })
        }
    }
}

/// The same bytes, widened to whole letters and no further than the text goes.
fn within(source: &str, Range { start, end }: Range<usize>) -> Range<usize> {
    source.floor_char_boundary(start.min(source.len()))..source.ceil_char_boundary(end.min(source.len()))
}
