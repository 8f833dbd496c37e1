//! A template's text to the names it uses, and what is not allowed in it.
//!
//! Allowed are expressions, `if`, `for` and `raw`. Without assignments, macros and repetition nothing can
//! double itself, so the size of any value is bounded by what comes in and by how often it is named.

use std::ops::Range;

use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{Span, parse as parse_jinja};
use minijinja::syntax::SyntaxConfig;

use super::walk::Walk;

const MAX_BYTES: usize = 64 * 1024;

/// A template that follows the rules.
#[derive(Debug, Default)]
pub(super) struct Template {
    /// Every place where it uses a name from outside.
    pub(super) references: Vec<Reference>,
    /// Whether it is one expression and nothing else, whose type is kept.
    pub(super) is_expression: bool,
    /// Where its first expression ends, if it begins with one.
    pub(super) head: Option<usize>,
}

/// A use of a name, such as `outputs['a'].rows`.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// `outputs`, `a`, `rows`.
    pub(super) path: Vec<String>,
    /// Whether a default stands ready for the last part.
    pub(super) guarded: bool,
    /// Whether it is multiplied, and so must be a number.
    pub(super) factor: bool,
    /// Its bytes in the template.
    pub(super) span: Range<usize>,
}

/// Something that is not allowed, and where in the template.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) span: Range<usize>,
}

/// Whether a text is a template at all.
pub(crate) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// How templates are written, here and where they are rendered.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the usual delimiters are valid")
}

/// Reads a template; the first thing that is not allowed is the answer if there is one.
pub(super) fn parse(source: &str) -> Result<Template, Problem> {
    read(source, "{% raw %}…{% endraw %}")
}

/// Reads an expression that stands in a command line.
pub(super) fn parse_in_command(source: &str) -> Result<Template, Problem> {
    read(source, "`\\{{`, outside of quotes")
}

fn read(source: &str, plain_braces: &str) -> Result<Template, Problem> {
    if source.len() > MAX_BYTES {
        let message = format!("a template has at most {MAX_BYTES} bytes, and this one has {}", source.len());
        return Err(Problem { message, hint: None, span: 0..0 });
    }
    let tree = parse_jinja(source, "template", syntax()).map_err(|error| {
        let said = error.detail().unwrap_or("it cannot be read").to_owned();
        let hint = Some(format!("to write braces as they are: {plain_braces}"));
        let span = error.range().unwrap_or(0..0);
        Problem { message: format!("the template is not valid: {said}"), hint, span }
    })?;
    let Stmt::Template(root) = &tree else { return Ok(Template::default()) };
    let mut walk = Walk::default();
    walk.statements(&root.children)?;
    walk.template.head = match root.children.first() {
        Some(Stmt::EmitExpr(first)) => Some(end_of(source, first.expr.span())),
        _ => None,
    };
    walk.template.is_expression =
        walk.template.head.is_some_and(|end| source[end..].trim_end_matches('\n').is_empty())
            && source.starts_with("{{");
    Ok(walk.template)
}

/// Where the `}}` of an expression ends.
fn end_of(source: &str, span: Span) -> usize {
    let from = span.end_offset as usize;
    source.get(from..).and_then(|rest| rest.find("}}")).map_or(source.len(), |at| from + at + 2)
}
