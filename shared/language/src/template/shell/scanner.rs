//! Reads a command line as bash would, as far as quoting goes.

use super::commands::Command;
use super::{Quoting, Refusal, Slot};
use crate::template::braces;

/// The expressions in a command line. Those in comments and those after a backslash are left alone.
pub(in crate::template) fn slots(text: &str) -> Vec<Slot> {
    let mut scanner = Scanner {
        text,
        at: 0,
        frames: vec![Frame::Commands],
        waiting: Vec::new(),
        slots: Vec::new(),
        test: (0, false),
        commands: vec![Command::default()],
    };
    while scanner.at < text.len() {
        scanner.step();
    }
    while !scanner.commands.is_empty() {
        scanner.end_command(false);
        scanner.commands.pop();
    }
    scanner.slots
}

/// What surrounds the present position.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Frame {
    /// Commands: the whole, `$(…)`, `(…)`.
    Commands,
    Backticks,
    Double,
    Single,
    /// `$'…'`, where backslashes are escapes.
    Escapes,
    /// `${…}`, and whether that is in double quotes, where a single quote is a character like any other.
    Parameter {
        quoted: bool,
    },
    /// An expression that bash computes, up to this character.
    Arithmetic(char),
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
    /// Whether the command that reads it evaluates it.
    evaluated: bool,
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// From the outermost to the innermost; commands are always around everything.
    frames: Vec<Frame>,
    /// The here-documents that begin with the next line.
    waiting: Vec<Document>,
    slots: Vec<Slot>,
    /// How far `[[ … ]]` was searched for, and whether that position is within one.
    test: (usize, bool),
    /// The command that is being read, and those around it that use its output.
    commands: Vec<Command>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        if let Some(span) = braces::expression(self.text, self.at) {
            self.at = span.end;
            let quoting = self.quoting(span.start, span.end);
            return self.add(Slot { span, quoting });
        }
        let (start, depth) = (self.at, self.frames.len());
        let is_separator = *self.frame() == Frame::Commands && " \t\n;&|()<>".contains(self.next());
        let is_document = matches!(self.frame(), Frame::Document(_));
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
            (_, '"') => self.enter(Frame::Double, 1),
            (Frame::Parameter { quoted: true }, '\'') => self.skip(1),
            (_, '\'') => self.enter(Frame::Single, 1),
            (Frame::Parameter { .. }, '}') => self.leave(),
            (Frame::Parameter { .. }, _) => self.skip(1),
            (Frame::Arithmetic(end), next) => self.arithmetic(*end, next),
            (_, next) => self.command(next),
        }
        // A quote opens or closes a part of a word, and what begins another frame is no text of it.
        let passed = self.text.get(start..self.at).unwrap_or_default();
        if !is_separator && !is_document && !passed.starts_with('#') {
            let text = if self.frames.len() == depth { passed.trim_start_matches('\\') } else { "" };
            self.current().push(text);
        }
    }

    fn add(&mut self, slot: Slot) {
        let index = self.slots.len();
        self.slots.push(slot);
        let in_document = matches!(self.frame(), Frame::Document(_));
        for command in self.commands.iter_mut().filter(|_| !in_document) {
            command.push_slot(index);
        }
    }

    /// The command that is being read.
    fn current(&mut self) -> &mut Command {
        if self.commands.is_empty() {
            self.commands.push(Command::default());
        }
        let last = self.commands.len() - 1;
        &mut self.commands[last]
    }

    fn end_command(&mut self, in_pipe: bool) {
        for slot in self.current().end(in_pipe) {
            self.slots[slot].quoting = Err(Refusal::Evaluated);
        }
    }

    /// What begins with a `$`.
    fn dollar(&mut self) {
        let rest = &self.text[self.at..];
        let quoted =
            matches!(self.frame(), Frame::Double | Frame::Document(_) | Frame::Parameter { quoted: true });
        if let Some(span) = braces::expression(self.text, self.at + 1) {
            self.at = span.end;
            self.add(Slot { span, quoting: Err(Refusal::Dollar) });
        } else if rest.starts_with("$((") {
            self.enter(Frame::Arithmetic(')'), 3);
            self.enter(Frame::Arithmetic(')'), 0);
        } else if rest.starts_with("$(") {
            self.enter(Frame::Commands, 2);
        } else if rest.starts_with("${") {
            self.enter(Frame::Parameter { quoted }, 2);
        } else if rest.starts_with("$[") {
            self.enter(Frame::Arithmetic(']'), 2);
        } else if rest.starts_with("$'") && !quoted {
            self.enter(Frame::Escapes, 2);
        } else {
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
            '(' if rest.starts_with("((") => {
                self.enter(Frame::Arithmetic(')'), 2);
                self.enter(Frame::Arithmetic(')'), 0);
            }
            '(' => self.enter(Frame::Commands, 1),
            ')' if self.frames.len() > 1 && *self.frame() == Frame::Commands => self.leave(),
            '[' if before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                self.enter(Frame::Arithmetic(']'), 1);
            }
            '<' if rest.starts_with("<<<") => {
                self.skip(3);
                self.current().begin_here_string();
            }
            '<' if rest.starts_with("<<") => self.announce(&rest[2..]),
            '\n' => {
                self.end_command(false);
                self.line();
            }
            ';' | '&' | '|' => {
                let is_pipe = next == '|' && !rest.starts_with("||");
                self.end_command(is_pipe);
                self.skip(if rest.starts_with("||") || rest.starts_with("&&") { 2 } else { 1 });
            }
            '<' if rest.starts_with("<(") => {
                self.current().begin_here_string();
                self.skip(1);
            }
            ' ' | '\t' | '>' | '<' => {
                self.current().end_word();
                self.skip(1);
            }
            _ => self.skip(1),
        }
    }

    /// Notes the here-document that is named after `<<`.
    fn announce(&mut self, named: &str) {
        let word = named.strip_prefix('-').unwrap_or(named).trim_start_matches([' ', '\t']);
        self.current().end_word();
        let evaluated = self.commands.iter().any(Command::evaluates_input);
        let mut document = Document { tabs: named.starts_with('-'), evaluated, ..Document::default() };
        let (mut quote, mut length) = (None, 0);
        for next in word.chars() {
            match next {
                _ if quote == Some(next) => quote = None,
                '\'' | '"' if quote.is_none() => (quote, document.literal) = (Some(next), true),
                '\\' if quote.is_none() => document.literal = true,
                _ if quote.is_none() && (next.is_whitespace() || ";&|<>()".contains(next)) => break,
                _ => document.delimiter.push(next),
            }
            length += next.len_utf8();
        }
        self.at += 2 + named.len() - word.len() + length;
        if length > 0 {
            self.waiting.push(document);
        }
    }

    /// Goes to the next line, where here-documents end and begin.
    fn line(&mut self) {
        self.at += 1;
        loop {
            let line = self.text[self.at..].split('\n').next().unwrap_or_default();
            match self.frame() {
                Frame::Document(document) if document.ends(line) => {
                    self.frames.pop();
                    self.at = (self.at + line.len() + 1).min(self.text.len());
                }
                Frame::Commands if !self.waiting.is_empty() => {
                    let document = self.waiting.remove(0);
                    self.frames.push(Frame::Document(document));
                }
                _ => return,
            }
        }
    }

    /// How a variable can replace the text from `start` to `end`.
    fn quoting(&mut self, start: usize, end: usize) -> Result<Quoting, Refusal> {
        let quotes = |frame: &&Frame| matches!(frame, Frame::Single | Frame::Double);
        match self.frames.iter().rev().find(|frame| !quotes(frame)) {
            Some(Frame::Arithmetic(_)) => return Err(Refusal::Arithmetic),
            Some(Frame::Parameter { .. }) => return Err(Refusal::Parameter),
            Some(Frame::Backticks) => return Err(Refusal::Backticks),
            Some(Frame::Escapes) => return Err(Refusal::Escapes),
            Some(Frame::Document(document)) if document.evaluated => return Err(Refusal::Evaluated),
            Some(Frame::Document(document)) if document.literal => return Err(Refusal::Literal),
            Some(Frame::Document(_)) => {}
            _ if self.commands.iter().any(Command::evaluates) => return Err(Refusal::Evaluated),
            _ => {}
        }
        if self.compares_numbers(start, end) {
            return Err(Refusal::Comparison);
        }
        Ok(match self.frame() {
            Frame::Single => Quoting::Single,
            Frame::Double | Frame::Document(_) => Quoting::Double,
            _ => Quoting::Bare,
        })
    }

    /// Whether `[[ … ]]` compares that text with something as a number.
    fn compares_numbers(&mut self, start: usize, end: usize) -> bool {
        const OPERATORS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        let fill = [' ', '\t', '"', '\''];
        let before = self.text[..start].trim_end_matches(fill);
        let after = self.text[end..].trim_start_matches(fill);
        OPERATORS.iter().any(|word| before.ends_with(word) || after.starts_with(word))
            && self.within_test(start)
    }

    /// Whether a position, at or after the last one asked for, is within `[[ … ]]`.
    fn within_test(&mut self, end: usize) -> bool {
        let (from, mut within) = self.test;
        let before = &self.text.as_bytes()[..end];
        for at in from..end {
            within = match &before[at..] {
                [b'[', b'[', b' ', ..] => true,
                [b']', b']', ..] => false,
                _ => within,
            };
        }
        self.test = (end, within);
        within
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

    fn enter(&mut self, frame: Frame, characters: usize) {
        self.skip(characters);
        if matches!(frame, Frame::Commands | Frame::Backticks) {
            self.current().push("");
            self.commands.push(Command::default());
        }
        self.frames.push(frame);
    }

    /// Leaves the innermost frame by the one character that closes it.
    fn leave(&mut self) {
        self.skip(1);
        if let Some(Frame::Commands | Frame::Backticks) = self.frames.pop() {
            self.end_command(false);
            self.commands.pop();
        }
    }
}

impl Document {
    fn ends(&self, line: &str) -> bool {
        let line = if self.tabs { line.trim_start_matches('\t') } else { line };
        line == self.delimiter
    }
}
