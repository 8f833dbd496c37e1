//! Reads the arguments of an interpreter: which are options, their values, code, or a script.

use super::interpreters::{Interpreter, Operands, Until};

/// What an argument, or the value of an option, is to an interpreter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Code,
    /// The path of a file with code, or the name of a module.
    Script,
    Data,
}

/// What an option says about itself and the words after it.
#[derive(Default)]
struct Parsed<'w> {
    meaning: Option<Meaning>,
    /// How many of the next words are its values.
    count: usize,
    /// Its value, if that is in the same word.
    value: Option<&'w str>,
    /// Whether the first operand of a shell is code.
    selects_code: bool,
    /// Whether a shell reads its input although there are operands.
    selects_input: bool,
    /// Whether the operands are opened, and some of them run.
    opens_operands: bool,
    /// Whether what follows in the same word is its value.
    takes_rest: bool,
    /// Whether nothing is known about it, so that the next word may be its value.
    is_unknown: bool,
}

/// The arguments of an interpreter, as far as they were read.
#[derive(Default)]
pub(super) struct Arguments<'w> {
    pub(super) has_code: bool,
    pub(super) script: Option<&'w str>,
    pub(super) selects_input: bool,
    pub(super) opens_operands: bool,
    /// The words from the second operand on.
    pub(super) rest: &'w [String],
    selects_code: bool,
    operands: usize,
    /// What the next words are, and how many of them.
    next: Option<(Meaning, usize)>,
    /// Whether no more options follow.
    pub(super) ended: bool,
    is_unknown: bool,
    last: &'w str,
}

impl<'w> Arguments<'w> {
    pub(super) fn read(known: &Interpreter, words: &'w [String]) -> Self {
        let mut arguments = Self::default();
        for (index, word) in words.iter().enumerate() {
            arguments.take(known, word);
            arguments.last = word;
            if arguments.operands == 2 && arguments.rest.is_empty() {
                arguments.rest = &words[index..];
            }
        }
        arguments
    }

    /// Whether the next word, of which the beginning is known, is code.
    pub(super) fn is_code_next(&self, known: &Interpreter, present: &str) -> bool {
        if let Some((meaning, _)) = self.next {
            return meaning == Meaning::Code;
        }
        if !self.ended
            && let Some(option) = known.option(present)
        {
            return option.selects_code || option.meaning == Some(Meaning::Code);
        }
        match known.operands {
            Operands::Shell => self.selects_code && self.operands == 0,
            Operands::Code => !self.has_code && self.script.is_none(),
            Operands::CodeAfterFirst => self.operands > 0,
            Operands::AllCode => true,
            Operands::Script { .. } | Operands::Data => false,
        }
    }

    /// Whether the next word, of which the beginning is known, names a file that is opened and may be run.
    pub(super) fn is_opened_next(&self, known: &Interpreter, present: &str) -> bool {
        let is_operand = self.next.is_none() && (self.ended || known.option(present).is_none());
        is_operand && self.opens_operands && (self.has_code || self.script.is_some())
    }

    /// Whether a value that continues the next word may be an option, or one more in the same word.
    pub(super) fn may_be_option(&self, known: &Interpreter, present: &str) -> bool {
        let is_open = match known.options_until {
            Until::Unchecked => false,
            Until::Operand => self.operands == 0,
            Until::Separator => true,
        };
        let has_value = |option: Parsed<'_>| option.meaning.is_some() || option.takes_rest;
        let continues = || {
            let is_option = present.starts_with('-') && !present.contains('=');
            is_option && !known.option(present).is_some_and(has_value)
        };
        is_open && !self.ended && self.next.is_none() && (present.is_empty() || continues())
    }

    fn take(&mut self, known: &Interpreter, word: &'w str) {
        if let Some((meaning, count)) = self.next.take() {
            self.next = (count > 1).then_some((meaning, count - 1));
            return self.settle(known, meaning, word);
        }
        if self.ended {
            return self.operand(known, word);
        }
        if word == "--" {
            self.ended = true;
            return;
        }
        let Some(option) = known.option(word) else { return self.operand(known, word) };
        self.selects_code |= option.selects_code;
        self.selects_input |= option.selects_input;
        self.opens_operands |= option.opens_operands;
        self.is_unknown = option.is_unknown;
        if let Some(meaning) = option.meaning {
            match option.value {
                Some(value) => self.settle(known, meaning, value),
                None => self.next = Some((meaning, option.count)),
            }
        }
    }

    fn settle(&mut self, known: &Interpreter, meaning: Meaning, word: &'w str) {
        match meaning {
            Meaning::Code => {
                self.has_code = true;
                // `<<>>` opens files and nothing else.
                let reads = || word.replace("<<>>", "");
                self.opens_operands |= !known.opening.is_empty()
                    && (word.contains("<ARGV>") || word.contains("<>") && reads().contains("<>"));
                self.ended |= matches!(known.operands, Operands::Script { repeats: false });
            }
            Meaning::Script => {
                self.script = Some(word);
                self.ended |= matches!(known.operands, Operands::Script { .. });
            }
            Meaning::Data => {}
        }
    }

    fn operand(&mut self, known: &Interpreter, word: &'w str) {
        // The empty ending of backups that `sed` takes on macOS.
        if word.is_empty() && self.last == "-i" || known.verbs.contains(&word) {
            return;
        }
        self.operands += 1;
        match known.operands {
            Operands::Shell => {
                if self.operands == 1 && self.selects_code {
                    self.has_code = true;
                } else if self.operands == 1 {
                    self.script = Some(word);
                }
                self.ended = true;
            }
            Operands::Script { .. } => {
                if !self.has_code && self.script.is_none() {
                    self.script = Some(word);
                }
                // Behind an unknown option it may be that one's value, unless it looks like a file.
                let is_doubtful = std::mem::take(&mut self.is_unknown) && !word.contains(['.', '/']);
                self.ended |= !is_doubtful;
            }
            Operands::Code => self.has_code |= self.script.is_none(),
            Operands::CodeAfterFirst => self.has_code |= self.operands > 1,
            Operands::AllCode | Operands::Data => {}
        }
    }
}

impl Interpreter {
    /// Reads a word as an option, if it is one.
    fn option<'w>(&self, word: &'w str) -> Option<Parsed<'w>> {
        let is_shell = matches!(self.operands, Operands::Shell);
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let given =
            |meaning, count| Some(Parsed { meaning: Some(meaning), count, value, ..Parsed::default() });
        let tables =
            [(Meaning::Code, &self.code), (Meaning::Script, &self.script), (Meaning::Data, &self.values)];
        if let Some((meaning, _)) = tables.iter().find(|(_, options)| options.long.contains(&name)) {
            return given(*meaning, 1);
        }
        if self.pairs.contains(&name) {
            return given(Meaning::Data, 2);
        }
        if name.starts_with("--") {
            // Many programs take the beginning of a long option for it.
            if name.len() > 4 && self.code.long.iter().any(|long| long.starts_with(name)) {
                return given(Meaning::Code, 1);
            }
            let is_unknown = value.is_none() && !name.starts_with("--no-");
            return Some(Parsed { is_unknown, ..Parsed::default() });
        }
        let letters = word.strip_prefix('-').or_else(|| word.strip_prefix('+').filter(|_| is_shell))?;
        (!letters.is_empty()).then(|| if is_shell { self.flags(letters) } else { self.cluster(letters) })
    }

    /// Reads the short options of a shell, whose values are always the next words.
    fn flags<'w>(&self, letters: &str) -> Parsed<'w> {
        let count = letters.chars().filter(|letter| self.values.short.contains(*letter)).count();
        Parsed {
            meaning: (count > 0).then_some(Meaning::Data),
            count,
            selects_code: letters.contains(|letter| self.code.short.contains(letter)),
            selects_input: letters.contains('s'),
            ..Parsed::default()
        }
    }

    /// Reads short options in one word, the last of which may have a value there or in the next word.
    fn cluster<'w>(&self, letters: &'w str) -> Parsed<'w> {
        let mut parsed = Parsed::default();
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            parsed.opens_operands |= self.opening.contains(letter);
            parsed.takes_rest = self.attached.contains(letter);
            let meaning = match letter {
                _ if self.code.short.contains(letter) => Meaning::Code,
                _ if self.script.short.contains(letter) => Meaning::Script,
                _ if self.values.short.contains(letter) => Meaning::Data,
                _ if parsed.takes_rest || !letter.is_ascii_alphanumeric() => break,
                _ => continue,
            };
            let value = (!rest.is_empty()).then_some(rest);
            return Parsed { meaning: Some(meaning), count: 1, value, ..parsed };
        }
        parsed
    }
}
