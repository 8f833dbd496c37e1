//! Reads a command line as bash would, as far as quoting goes.

mod nesting;
mod redirects;

use std::collections::{BTreeSet, VecDeque};

use super::builtins::identifier;
use super::commands::{Command, Role};
use super::computed::Computed;
use super::{Line, Quoting, Refusal, Slot};
use crate::template::braces;
use nesting::{MAX_DEPTH, parameter_name};

/// A command line. Expressions in comments and those after a backslash are left alone.
pub(in crate::template) fn read(text: &str) -> Line {
    let mut scanner = Scanner {
        text,
        at: 0,
        frames: vec![Frame::Commands],
        waiting: VecDeque::new(),
        places: Vec::new(),
        computed: Computed::default(),
        documents: Vec::new(),
        assigned: Vec::new(),
        numbers: BTreeSet::new(),
        read: BTreeSet::new(),
        commands: vec![Command::default()],
        bases: vec![0],
    };
    while scanner.at < text.len() {
        scanner.step();
    }
    scanner.end_commands(0);
    scanner.refuse_variables();
    scanner.finish()
}

/// What surrounds the present position.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Frame {
    /// Commands whose output is used: the whole, `$(…)`, `<(…)`, `>(…)`.
    Commands,
    /// `(…)`, and the parentheses of a function.
    Subshell,
    /// The values in `name=(…)`.
    Array,
    Backticks,
    Double,
    Single,
    /// `$'…'`, where backslashes are escapes.
    Escapes,
    /// `${…}`, and whether that is in double quotes, where a single quote is a character like any other.
    Parameter {
        quoted: bool,
        /// Whether bash computes a part of it, as in `${x:1}` and `${x[1]}`.
        computed: bool,
    },
    /// An expression that bash computes, up to this character.
    Arithmetic(char),
    /// The outer parentheses of `((…))`.
    Computed,
    Document(Document),
}

/// A here-document whose body is read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Document {
    delimiter: String,
    /// Whether nothing in it is expanded.
    literal: bool,
    /// Whether tabs before the delimiter are ignored.
    tabs: bool,
    /// Whether a shell runs it.
    is_code: bool,
    /// Its index among the here-documents.
    index: usize,
}

/// An expression, or a variable that is named: what it holds may be a value.
struct Place {
    slot: Slot,
    variable: Option<String>,
}

/// The expressions in a here-document.
#[derive(Default)]
struct Body {
    slots: Vec<usize>,
    /// Whether a command that reads it evaluates it.
    is_evaluated: bool,
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// From the outermost to the innermost; commands are always around everything.
    frames: Vec<Frame>,
    /// The here-documents that begin with the next line.
    waiting: VecDeque<Document>,
    places: Vec<Place>,
    /// The variables that bash computes.
    computed: Computed,
    documents: Vec<Body>,
    /// The expressions whose values a variable takes, and which; none if a command may read it from its input.
    assigned: Vec<(usize, Option<String>)>,
    /// The variables that are numbers or references.
    numbers: BTreeSet<String>,
    /// The variables that are read from some input.
    read: BTreeSet<String>,
    /// The command that is being read, and the groups and commands around it.
    commands: Vec<Command>,
    /// For each frame of commands, the number of commands around it.
    bases: Vec<usize>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        if let Some(span) = braces::expression(self.text, self.at) {
            self.at = span.end;
            let quoting = self.quoting();
            let is_computed = self.is_in_arithmetic();
            return self.add(Place { slot: Slot { span, quoting, is_computed }, variable: None });
        }
        let (start, depth) = (self.at, self.frames.len());
        let is_separator = self.frame().has_commands() && " \t\n;&|()<>".contains(self.next())
            || *self.frame() == Frame::Computed;
        let is_document = matches!(self.frame(), Frame::Document(_));
        self.compute_name();
        match (self.frame(), self.next()) {
            (Frame::Single, '\'') | (Frame::Escapes, '\'') | (Frame::Double, '"') => self.leave(),
            (Frame::Document(_), '\n') => self.line(),
            (Frame::Single, _) => self.skip(1),
            (Frame::Document(document), _) if document.literal => self.skip(1),
            (_, '\\') => self.skip(2),
            (Frame::Escapes, _) => self.skip(1),
            (_, '$') => self.dollar(),
            (Frame::Backticks, '`') => self.leave(),
            (_, '`') => self.enter(Frame::Backticks, 1),
            (Frame::Document(_) | Frame::Double, _) => self.skip(1),
            (_, '"') => {
                self.quoted_code('"');
                self.enter(Frame::Double, 1);
            }
            (Frame::Parameter { quoted: true, .. }, '\'') => self.skip(1),
            (_, '\'') => {
                self.quoted_code('\'');
                self.enter(Frame::Single, 1);
            }
            (Frame::Parameter { .. }, '}') => self.leave(),
            (Frame::Parameter { .. }, _) => self.skip(1),
            (Frame::Arithmetic(end), next) => self.arithmetic(*end, next),
            (Frame::Computed, ')') => {
                self.leave();
                self.current().end_group();
            }
            (Frame::Computed, _) => self.skip(1),
            (_, next) => self.command(next),
        }
        // A quote opens or closes a part of a word, and what begins another frame is no text of it.
        let passed = self.text.get(start..self.at).unwrap_or_default();
        if !is_separator && !is_document && !passed.starts_with('#') && passed != "\\\n" {
            if passed.starts_with(['\\', '"', '\'']) {
                self.current().quote();
            }
            // A subscript stays in sight: it is no part of a variable's name.
            let is_text = self.frames.len() == depth || matches!(passed, "[" | "]");
            let text = if is_text { passed.trim_start_matches('\\') } else { "" };
            self.current().push(text);
        }
    }

    /// What begins with a `$`.
    fn dollar(&mut self) {
        let rest = &self.text[self.at..];
        let quoted = matches!(
            self.frame(),
            Frame::Double | Frame::Document(_) | Frame::Parameter { quoted: true, .. }
        );
        if let Some(span) = braces::expression(self.text, self.at + 1) {
            self.at = span.end;
            let slot = Slot { span, quoting: Err(Refusal::Dollar), is_computed: false };
            self.add(Place { slot, variable: None });
        } else if rest.starts_with("$((") {
            self.enter(Frame::Arithmetic(')'), 3);
            self.enter(Frame::Arithmetic(')'), 0);
        } else if rest.starts_with("$(") {
            self.enter(Frame::Commands, 2);
        } else if rest.starts_with("${") {
            let computed = self.parameter();
            self.enter(Frame::Parameter { quoted, computed }, 2);
        } else if rest.starts_with("$[") {
            self.enter(Frame::Arithmetic(']'), 2);
        } else if rest.starts_with("$'") && !quoted {
            self.enter(Frame::Escapes, 2);
        } else {
            let name = parameter_name(&rest[1..]);
            self.refer(name);
            self.skip(1);
        }
    }

    fn arithmetic(&mut self, end: char, next: char) {
        match next {
            _ if next == end => self.leave(),
            '(' => self.enter(Frame::Arithmetic(')'), 1),
            // A bracket that is still open was a character like any other.
            '\n' if end == ']' => drop(self.frames.pop()),
            _ => self.skip(1),
        }
    }

    /// Reads the next character outside all quotes.
    fn command(&mut self, next: char) {
        let (before, rest) = self.text.split_at(self.at);
        let starts_word = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        match next {
            '#' if starts_word => self.at += rest.find('\n').unwrap_or(rest.len()),
            '\n' => {
                if self.continues() {
                    self.end_word();
                }
                if !self.continues() && !self.current().is_empty() {
                    self.end_command(false);
                }
                self.line();
            }
            ';' | '&' | '|' | '(' | ')' | '<' | '>' if self.current().in_test() => {
                self.end_word();
                // What follows `]]` is read again as usual.
                let is_test = self.current().in_test();
                self.skip(usize::from(is_test));
            }
            '(' | ')' => self.parenthesis(next),
            '[' if before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                || *self.frame() == Frame::Array && starts_word =>
            {
                self.enter(Frame::Arithmetic(']'), 1);
            }
            '<' | '>' => self.redirect(),
            '&' if rest.starts_with("&>") => self.redirect(),
            ';' if rest.starts_with(";;") || rest.starts_with(";&") => {
                self.end_command(false);
                self.current().begin_pattern();
                self.skip(2);
            }
            ';' | '&' | '|' => {
                let is_pipe = next == '|' && !rest.starts_with("||");
                self.end_command(is_pipe);
                let is_long = ["||", "&&", "|&"].iter().any(|operator| rest.starts_with(operator));
                self.skip(if is_long { 2 } else { 1 });
            }
            ' ' | '\t' => {
                self.end_word();
                self.skip(1);
            }
            _ => self.skip(1),
        }
    }

    /// Whether the end of a line does not end the command.
    fn continues(&mut self) -> bool {
        self.current().in_test() || *self.frame() == Frame::Array
    }

    /// Reads a parenthesis outside all quotes.
    fn parenthesis(&mut self, next: char) {
        let (before, rest) = self.text.split_at(self.at);
        if before.ends_with(['<', '>']) && next == '(' {
            return self.enter(Frame::Commands, 1);
        }
        if before.ends_with('=') && next == '(' {
            return self.enter(Frame::Array, 1);
        }
        self.end_word();
        if self.current().in_pattern() {
            if next == ')' {
                self.end_current(false);
                self.current().end_pattern();
            }
            self.skip(1);
        } else if rest.starts_with("((") {
            self.enter(Frame::Computed, 1);
            self.enter(Frame::Arithmetic(')'), 1);
        } else if next == '(' {
            self.enter(Frame::Subshell, 1);
        } else if self.frames.len() > 1 && self.frame().has_commands() {
            let is_subshell = *self.frame() == Frame::Subshell;
            self.leave();
            if is_subshell {
                self.current().end_group();
            }
        } else {
            self.end_current(false);
            self.skip(1);
        }
    }

    /// How a variable can replace the text that is being read.
    fn quoting(&self) -> Result<Quoting, Refusal> {
        let quotes = |frame: &&Frame| matches!(frame, Frame::Single | Frame::Double);
        let is_document = match self.frames.iter().rev().find(|frame| !quotes(frame)) {
            Some(Frame::Arithmetic(_) | Frame::Computed) => return Err(Refusal::Arithmetic),
            Some(Frame::Parameter { .. }) => return Err(Refusal::Parameter),
            Some(Frame::Backticks) => return Err(Refusal::Backticks),
            Some(Frame::Escapes) => return Err(Refusal::Escapes),
            Some(Frame::Document(document)) if document.literal => return Err(Refusal::Literal),
            Some(Frame::Document(_)) => true,
            _ => false,
        };
        if self.commands.len() > MAX_DEPTH {
            return Err(Refusal::Evaluated);
        }
        if let Some(refusal) = self.commands.iter().find_map(Command::refusal) {
            return Err(refusal);
        }
        if !is_document && self.commands.last().is_some_and(Command::is_named_by_value) {
            return Err(Refusal::Name);
        }
        Ok(match self.frame() {
            Frame::Single => Quoting::Single,
            Frame::Double | Frame::Document(_) => Quoting::Double,
            _ => Quoting::Bare,
        })
    }

    /// Whether what stands here becomes part of what bash computes.
    fn is_in_arithmetic(&self) -> bool {
        let computes = |frame: &Frame| {
            matches!(frame, Frame::Arithmetic(_) | Frame::Computed | Frame::Parameter { computed: true, .. })
        };
        let is_file = self.commands.last().is_some_and(|command| command.role() == Role::File);
        !is_file && (self.frames.len() > 4 * MAX_DEPTH || self.frames.iter().any(computes))
    }

    /// Notes what the quoted text that begins here computes, if a shell runs it.
    fn quoted_code(&mut self, quote: char) {
        if self.current().runs_shell() {
            let text = self.text[self.at + 1..].split(quote).next().unwrap_or_default();
            self.computed.add_code(text);
        }
    }

    /// Notes the name that begins here, if bash computes it.
    fn compute_name(&mut self) {
        let quotes = |frame: &&Frame| matches!(frame, Frame::Single | Frame::Double);
        let around = self.frames.iter().rev().take(4).find(|frame| !quotes(frame));
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        let (before, rest) = self.text.split_at(self.at);
        if matches!(around, Some(Frame::Arithmetic(_) | Frame::Computed))
            && rest.starts_with(begins)
            && !before.ends_with(|c: char| begins(c) || c.is_ascii_digit())
        {
            self.computed.add(identifier(rest));
        }
    }

    fn frame(&self) -> &Frame {
        self.frames.last().unwrap_or(&Frame::Commands)
    }

    fn next(&self) -> char {
        self.text[self.at..].chars().next().unwrap_or_default()
    }

    fn skip(&mut self, characters: usize) {
        let passed = self.text[self.at..].chars().take(characters);
        self.at += passed.map(char::len_utf8).sum::<usize>();
    }
}

impl Frame {
    fn has_commands(&self) -> bool {
        matches!(self, Self::Commands | Self::Subshell | Self::Array | Self::Backticks)
    }
}

impl Document {
    fn ends(&self, line: &str) -> bool {
        let line = if self.tabs { line.trim_start_matches('\t') } else { line };
        line == self.delimiter
    }
}
