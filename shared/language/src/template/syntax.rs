//! A template's text to the names it uses, and what is not allowed in it.
//!
//! Allowed are expressions, `if`, `for` and `raw`. Without assignments, macros and repetition, and without loops over
//! something made of other loops' names, nothing can double itself, so the size of any value is bounded by what comes
//! in and by how often it is named.

use std::ops::Range;

use minijinja::Error;
use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{Span, parse as parse_jinja, parse_expr};
use minijinja::syntax::SyntaxConfig;

use super::depth;
use super::load::{Counts, Load};
use super::walk::Walk;

const MAX_BYTES: usize = 64 * 1024;

/// A template that follows the rules.
#[derive(Debug, Default)]
pub(super) struct Template {
    /// Every use of a name from outside.
    pub(super) references: Vec<Reference>,
    /// Whether it is one expression and nothing else, whose type is kept.
    pub(super) is_expression: bool,
    /// Where its first expression ends, if it begins with one.
    pub(super) head: Option<usize>,
    /// What its operators work on.
    pub(super) load: Load,
}

impl Template {
    /// Whether it uses the name from outside.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.references.iter().any(|reference| reference.path.first().is_some_and(|top| top == name))
    }
}

/// A use of a name, such as `outputs['a'].rows`.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The names and keys: `outputs`, `a`, `rows`.
    pub(super) path: Vec<String>,
    /// Whether a default stands ready for the last part.
    pub(super) guarded: bool,
    /// Whether it is multiplied, and so must be a number.
    pub(super) factor: bool,
    /// How much of its value counts.
    pub(super) counts: Counts,
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
    SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the default delimiters are valid")
}

/// Reads a template; the first thing that is not allowed is the answer if there is one.
pub(super) fn parse(source: &str) -> Result<Template, Problem> {
    read(source, "{% raw %}…{% endraw %}")
}

/// Reads an expression that stands in a command line.
pub(super) fn parse_in_command(source: &str) -> Result<Template, Problem> {
    read(source, "`\\{{`, outside of quotes")
}

/// Reads an expression that stands without braces.
pub(super) fn parse_expression(source: &str) -> Result<Template, Problem> {
    check_size("an expression", source)?;
    depth::check(source, true)?;
    if source.trim_start().starts_with("{{") {
        let message = "this is an expression, not a template".to_owned();
        let hint = format!("leave out the braces: `{}`", without_braces(source));
        return Err(Problem { message, hint: Some(hint), span: 0..0 });
    }
    let tree = parse_expr(source).map_err(|error| {
        let span = error.range().unwrap_or(0..0);
        let hint = hint_for(source, span.clone()).map(str::to_owned);
        Problem { message: format!("the expression is not valid: {}", detail(&error)), hint, span }
    })?;
    let mut walk = Walk::default();
    walk.expression(&tree)?;
    Ok(Template { is_expression: true, ..walk.template })
}

fn without_braces(source: &str) -> String {
    let bare =
        ["{{-", "-}}", "{{", "}}"].iter().fold(source.to_owned(), |text, mark| text.replace(mark, " "));
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What people write who have another language in mind.
fn hint_for(source: &str, span: Range<usize>) -> Option<&'static str> {
    let rest = source.get(span.start..).unwrap_or_default().trim_start();
    match rest {
        _ if source.contains("{{") => Some("leave out the braces: an expression uses names as they are"),
        _ if rest.starts_with("=>") => Some("write `>=`"),
        _ if rest.starts_with("=<") => Some("write `<=`"),
        _ if rest.starts_with('=') => Some("to compare, write `==`"),
        _ if rest.starts_with('&') => Some("write `and`"),
        _ if rest.starts_with('|') => Some("write `or`; a single `|` applies a filter, such as `| length`"),
        _ if rest.starts_with('!') => Some("write `not`"),
        _ => None,
    }
}

fn check_size(what: &str, source: &str) -> Result<(), Problem> {
    match source.len() > MAX_BYTES {
        true => {
            let message = format!("{what} has at most {MAX_BYTES} bytes, and this one has {}", source.len());
            Err(Problem { message, hint: None, span: 0..0 })
        }
        false => Ok(()),
    }
}

fn detail(error: &Error) -> &str {
    error.detail().unwrap_or("it cannot be read")
}

fn read(source: &str, plain_braces: &str) -> Result<Template, Problem> {
    check_size("a template", source)?;
    depth::check(source, false)?;
    let tree = parse_jinja(source, "template", syntax()).map_err(|error| {
        let hint = Some(format!("to write braces as they are: {plain_braces}"));
        let span = error.range().unwrap_or(0..0);
        Problem { message: format!("the template is not valid: {}", detail(&error)), hint, span }
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
