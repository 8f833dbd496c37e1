//! Which commands and groups are around a position, and what becomes of the values in them.

use super::super::builtins::identifier;
use super::super::commands::{Command, Keyword, Role, Source};
use super::super::computed::{identifiers, takes_any};
use super::super::{Line, Quoting, Refusal, Slot, variables};
use super::{Frame, Place, Scanner};

/// The maximum number of commands and groups around a value. Deeper ones take none, so that the time stays linear.
pub(super) const MAX_DEPTH: usize = 64;

/// The maximum number of expressions and variables whose ways are followed.
const MAX_PLACES: usize = 5_000;

/// Stands for what commands read from their input. No variable is called so.
const INPUT: &str = "<";

/// The parameter with which a text begins: a name, `@` for the positional ones, or nothing for others.
pub(super) fn parameter_name(text: &str) -> &str {
    match text.chars().next() {
        Some('@' | '*' | '1'..='9') => "@",
        Some('a'..='z' | 'A'..='Z' | '_') => identifier(text),
        _ => "",
    }
}

impl Scanner<'_> {
    /// Adds an expression or a variable that stands here.
    pub(super) fn add(&mut self, place: Place) {
        let (index, is_value) = (self.places.len(), place.variable.is_none());
        self.places.push(place);
        // Where more is around it, it is refused in any case.
        let document = self.frames.iter().rev().take(4 * MAX_DEPTH).find_map(|frame| match frame {
            Frame::Document(document) => Some(document.index),
            _ => None,
        });
        if let Some(document) = document {
            self.documents[document].slots.push(index);
            if self.documents[document].is_evaluated {
                self.refuse(Source::Slot(index), Refusal::Evaluated);
            }
        }
        let depth = self.commands.len();
        let around = || self.commands.iter().take(MAX_DEPTH);
        if document.is_some() || around().any(|command| command.role() == Role::Input) {
            self.assigned.push((index, None));
        }
        // Of a file, only what is in it reaches a variable.
        let is_file = self.commands.last().is_some_and(|command| command.role() == Role::File);
        let takes = |name: &&str| !is_file || variables::is_evaluated(name) || variables::is_number(name);
        let assigned = around().filter_map(Command::assigned).filter(takes);
        let variables = assigned.map(|name| (index, Some(name.to_owned())));
        self.assigned.extend(variables.collect::<Vec<_>>());
        if !matches!(self.frame(), Frame::Document(_)) && depth <= MAX_DEPTH {
            for (number, command) in self.commands.iter_mut().enumerate() {
                command.push_slot(index, number + 1 == depth, is_file, is_value);
            }
        }
    }

    /// Notes a variable that is named here: what it holds goes where a value here would.
    pub(super) fn refer(&mut self, name: &str) {
        if name.is_empty() {
            return;
        }
        if self.places.len() >= MAX_PLACES {
            // Any value may reach it.
            self.computed.add("@");
            return self.computed.add(name);
        }
        let is_computed = self.commands.len() > MAX_DEPTH
            || self.is_in_arithmetic()
            || self.commands.last().is_some_and(Command::computes);
        let slot = Slot { span: self.at..self.at, quoting: Ok(Quoting::Bare), is_computed };
        self.add(Place { slot, variable: Some(name.to_owned()) });
    }

    /// Notes the parameter of the `${…}` that begins here. Returns whether bash computes a part of it.
    pub(super) fn parameter(&mut self) -> bool {
        let rest = &self.text[self.at + 2..];
        let (is_length, is_indirect) = (rest.starts_with('#'), rest.starts_with('!'));
        let rest = rest.strip_prefix(['#', '!']).unwrap_or(rest);
        let name = parameter_name(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let rest = rest.get(if name == "@" { digits.max(1) } else { name.len() }..).unwrap_or_default();
        let is_whole = rest.starts_with("[@]") || rest.starts_with("[*]");
        let is_list = is_whole || rest.starts_with("@}") || rest.starts_with("*}");
        // A length, the keys of a list and the names that begin so are no values.
        let is_no_value = is_length || is_indirect && is_list;
        if !is_no_value {
            self.refer(name);
        }
        // Its value is a name, or is expanded like a prompt.
        let inner = rest.split('}').next().unwrap_or_default();
        if is_indirect && !is_list || inner.contains("@P") {
            self.computed.add(name);
        }
        let is_part = rest.starts_with(':') && !rest[1..].starts_with(['-', '=', '?', '+']);
        let computed =
            rest.starts_with('[') && !is_whole || is_part || is_whole && rest[3..].starts_with(':');
        if computed {
            self.computed.add_all(inner);
        }
        computed
    }

    /// The values, and the variables that bash computes.
    pub(super) fn finish(mut self) -> Line {
        let from = |place: &Place| place.variable.clone();
        for place in self.places.iter().filter(|place| place.slot.is_computed) {
            from(place).iter().for_each(|name| self.computed.add(name));
        }
        for (index, to) in &self.assigned {
            let Some(from) = from(&self.places[*index]) else { continue };
            self.computed.flow(&from, to.as_deref().unwrap_or(INPUT));
        }
        for name in self.read {
            self.computed.flow(INPUT, &name);
        }
        let computed = self.computed.close();
        let any = takes_any(&computed);
        // An empty name stands for any.
        let is_computed = |to: &Option<String>| match to.as_deref().unwrap_or(INPUT) {
            "" => !computed.is_empty(),
            name => computed.contains(name),
        };
        for (index, to) in &self.assigned {
            self.places[*index].slot.is_computed |= is_computed(to);
        }
        let values = self.places.into_iter().filter(|place| place.variable.is_none());
        let slots = values.map(|Place { slot, .. }| Slot { is_computed: slot.is_computed || any, ..slot });
        Line { slots: slots.collect(), computed }
    }

    /// Takes no value from a source.
    pub(super) fn refuse(&mut self, source: Source, refusal: Refusal) {
        match source {
            Source::Slot(slot) => {
                let slot = &mut self.places[slot].slot;
                slot.is_computed |= matches!(
                    refusal,
                    Refusal::Computed | Refusal::Comparison | Refusal::Declared | Refusal::Number
                );
                if refusal != Refusal::Computed {
                    slot.quoting = Err(refusal);
                }
            }
            Source::Document(document) => {
                self.documents[document].is_evaluated = true;
                for slot in std::mem::take(&mut self.documents[document].slots) {
                    self.places[slot].slot.quoting = Err(refusal);
                }
            }
        }
    }

    /// Takes no value for variables that decide what is run, and for those that are numbers or references, wherever they
    /// were made so.
    pub(super) fn refuse_variables(&mut self) {
        // An empty name stands for any.
        let is_declared = |name: &String| {
            self.numbers.contains(name)
                || self.numbers.contains("")
                || name.is_empty() && !self.numbers.is_empty()
        };
        let refusal = |name: &String| match name {
            name if variables::is_evaluated(name) => Some(Refusal::Variable),
            name if variables::is_number(name) => Some(Refusal::Number),
            name => is_declared(name).then_some(Refusal::Declared),
        };
        let of_read = self.read.iter().find_map(refusal);
        let of_slot =
            |(slot, name): &(usize, Option<String>)| Some((*slot, name.as_ref().map_or(of_read, refusal)?));
        for (slot, refusal) in self.assigned.iter().filter_map(of_slot).collect::<Vec<_>>() {
            self.refuse(Source::Slot(slot), refusal);
        }
    }

    /// The command that is being read.
    pub(super) fn current(&mut self) -> &mut Command {
        if self.commands.is_empty() {
            self.commands.push(Command::default());
        }
        let last = self.commands.len() - 1;
        &mut self.commands[last]
    }

    /// Ends the present word, which may begin or end a group of commands.
    pub(super) fn end_word(&mut self) {
        match self.current().end_word() {
            Some(Keyword::Open(opener)) => self.commands.push(Command::first_of(opener)),
            Some(Keyword::Close) => {
                if self.commands.len() > self.bases.last().unwrap_or(&0) + 1 {
                    self.end_current(false);
                    self.commands.pop();
                }
                self.current().end_group();
            }
            None => {}
        }
    }

    pub(super) fn end_command(&mut self, in_pipe: bool) {
        self.end_word();
        self.end_current(in_pipe);
    }

    pub(super) fn end_current(&mut self, in_pipe: bool) {
        let ended = self.current().end(in_pipe);
        ended.refused.into_iter().for_each(|(source, refusal)| self.refuse(source, refusal));
        for source in ended.piped {
            if let Source::Slot(slot) = source {
                self.assigned.push((slot, None));
            }
        }
        ended.computed.iter().for_each(|words| self.computed.add_all(words));
        ended.looped.iter().for_each(|name| self.computed.flow("@", name));
        for (name, words) in &ended.assigned {
            identifiers(words).for_each(|from| self.computed.flow(from, name));
        }
        self.numbers.extend(ended.numbers);
        self.read.extend(ended.read);
        if let [.., around, _] = self.commands.as_mut_slice()
            && ended.runs_input
        {
            around.runs_within();
        }
    }

    /// Ends all commands but the outermost ones.
    pub(super) fn end_commands(&mut self, remaining: usize) {
        self.end_word();
        while self.commands.len() > remaining {
            self.end_current(false);
            self.commands.pop();
        }
    }

    pub(super) fn enter(&mut self, frame: Frame, characters: usize) {
        self.skip(characters);
        if frame.has_commands() {
            let is_array = frame == Frame::Array;
            if frame != Frame::Subshell {
                self.current().push("");
            }
            self.bases.push(self.commands.len());
            self.commands.push(if is_array { Command::array() } else { Command::default() });
        }
        self.frames.push(frame);
    }

    /// Leaves the innermost frame by the one character that closes it.
    pub(super) fn leave(&mut self) {
        self.skip(1);
        if self.frames.pop().is_some_and(|frame| frame.has_commands()) {
            let base = self.bases.pop().unwrap_or_default();
            self.end_commands(base);
        }
    }
}
