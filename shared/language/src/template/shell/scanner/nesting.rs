//! Which commands and groups are around a position, and what becomes of the values in them.

use super::super::commands::{Command, Keyword, Source};
use super::super::{Refusal, Slot, variables};
use super::{Frame, Scanner};

/// The maximum number of commands and groups around a value. Deeper ones take none, so that the time stays linear.
pub(super) const MAX_DEPTH: usize = 64;

impl Scanner<'_> {
    pub(super) fn add(&mut self, slot: Slot) {
        let index = self.slots.len();
        self.slots.push(slot);
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
        if document.is_some() || around().any(Command::is_input) {
            self.assigned.push((index, None));
        }
        let variables = around().filter_map(Command::assigned).map(|name| (index, Some(name.to_owned())));
        self.assigned.extend(variables.collect::<Vec<_>>());
        if !matches!(self.frame(), Frame::Document(_)) && depth <= MAX_DEPTH {
            for (number, command) in self.commands.iter_mut().enumerate() {
                command.push_slot(index, number + 1 == depth);
            }
        }
    }

    /// Takes no value from a source.
    pub(super) fn refuse(&mut self, source: Source, refusal: Refusal) {
        match source {
            Source::Slot(slot) => self.slots[slot].quoting = Err(refusal),
            Source::Document(document) => {
                self.documents[document].is_evaluated = true;
                for slot in std::mem::take(&mut self.documents[document].slots) {
                    self.slots[slot].quoting = Err(refusal);
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
