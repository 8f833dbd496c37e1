//! Which words of a command line another interpreter reads as code, as in `bash -c "…"` or `awk '…'`.
//!
//! It knows programs by their names, so it has limits: a program that it does not know, a name behind a variable or a
//! function, or a value that a command stores first and evaluates later.

mod parts;

use super::Refusal;
use super::interpreters::{Each, Interpreter, is_option, name};
use super::{builtins, runners};
pub(super) use parts::{Ended, Keyword, Role, Source};

/// Programs that run none of their arguments, so that the name of an interpreter among these means nothing.
const INERT: [&str; 15] = [
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "tee", "cat", "ls", "cp", "mv", "which", "type",
    "test", "command",
];
/// Programs that run what they read, if nothing follows them.
const RUN_INPUT: [&str; 7] = ["env", "sudo", "doas", "nohup", "nice", "setsid", "timeout"];
/// How `[[ … ]]` compares numbers.
const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// The maximum number of words of a command that are checked, and of interpreters among them. No value may follow an
/// interpreter in a longer command.
const MAX_WORDS: usize = 200;
const MAX_INTERPRETERS: usize = 10;

/// An interpreter among the words of a command.
struct Named {
    /// The index of its word.
    at: usize,
    known: &'static Interpreter,
    /// Whether the name of a program stands there.
    is_program: bool,
}

/// A value in a `[[ … ]]`, its word, and what is wrong with it if numbers are compared there.
struct Tested {
    slot: usize,
    word: usize,
    refusal: Refusal,
}

/// A simple command, as far as it was read. A group of commands is one of these too, and so is what encloses it.
#[derive(Default)]
pub(super) struct Command {
    words: Vec<String>,
    /// The interpreters among the words: they may stand behind `xargs`, `sudo` or `docker run`.
    interpreters: Vec<Named>,
    /// The word that is being read.
    word: Option<String>,
    /// Whether a part of that word is in quotes or a value, so that it is no reserved word.
    is_quoted: bool,
    role: Role,
    /// The values in the command and in the commands within it, and their here-documents.
    values: Vec<Source>,
    /// Those that it reads: from commands before it in a pipe, from here-strings and from here-documents.
    input: Vec<Source>,
    /// The values in the `[[ … ]]` that is being read, and whether numbers are compared in it.
    test: Option<(Vec<Tested>, bool)>,
    /// The values that were compared as numbers, and the words of these comparisons.
    compared: Vec<(usize, Refusal)>,
    computed: Vec<String>,
    /// The variable of a loop without a list, and what other variables take.
    looped: Option<String>,
    assigned: Vec<(String, String)>,
    /// Whether a command within evaluates what this one reads.
    runs_input: bool,
    /// Whether a command in `>(…)` evaluates what this one writes.
    runs_output: bool,
    /// The word that began the group of which this is a command.
    opener: Option<&'static str>,
    /// Whether what comes next in a `case` is a pattern.
    in_pattern: bool,
}

impl Command {
    /// The first command of a group.
    pub(super) fn first_of(opener: &'static str) -> Self {
        let is_list = matches!(opener, "for" | "select" | "case");
        let words = if is_list { vec![opener.to_owned()] } else { Vec::new() };
        Self { words, opener: Some(opener), in_pattern: opener == "case", ..Self::default() }
    }

    /// The values of an array, which are no command.
    pub(super) fn array() -> Self {
        Self { words: vec!["(".to_owned()], ..Self::default() }
    }

    /// Adds to the present word, which may be empty and still be a word.
    pub(super) fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    /// Says that a part of the present word is in quotes.
    pub(super) fn quote(&mut self) {
        self.is_quoted = true;
    }

    /// Adds an expression or a variable; it may stand in a command within this one, or name a file there. A value is a part
    /// of the present word.
    pub(super) fn push_slot(&mut self, slot: usize, is_own: bool, is_file: bool, is_value: bool) {
        self.values.push(Source::Slot(slot));
        if self.role == Role::Input {
            self.input.push(Source::Slot(slot));
        }
        if let Some((values, _)) = self.test.as_mut().filter(|_| is_own || !is_file) {
            let refusal = if is_own { Refusal::Comparison } else { Refusal::Computed };
            values.push(Tested { slot, word: self.words.len(), refusal });
        }
        if is_value {
            self.is_quoted = true;
            self.push("");
        }
    }

    /// Adds a here-document, which this command reads, or one within it.
    pub(super) fn push_document(&mut self, document: usize, is_own: bool) {
        self.values.push(Source::Document(document));
        if is_own || self.role == Role::Input {
            self.input.push(Source::Document(document));
        }
    }

    /// Ends the present word. Returns it if it is a reserved word that begins or ends a group.
    pub(super) fn end_word(&mut self) -> Option<Keyword> {
        let word = self.word.take()?;
        let (is_quoted, role) = (std::mem::take(&mut self.is_quoted), std::mem::take(&mut self.role));
        if role != Role::Argument {
            return None;
        }
        if let Some((_, compares)) = &mut self.test {
            *compares |= COMPARISONS.contains(&word.as_str());
            if word == "]]" && !is_quoted {
                self.end_group();
                return None;
            }
        } else if !is_quoted {
            if let Some(keyword) = self.keyword(&word) {
                return Some(keyword);
            }
            if word == "[[" && self.is_at_name() {
                self.test = Some((Vec::new(), false));
            }
            if word == "do" && self.is_loop() {
                self.forget_words();
                return None;
            }
        }
        let is_program = || self.words.len() > MAX_WORDS || runners::is_program(&self.words);
        if let Some(known) = Interpreter::called(&word, is_program) {
            let at = self.words.len().min(MAX_WORDS);
            self.interpreters.push(Named { at, known, is_program: is_program() });
        }
        if self.words.len() <= MAX_WORDS {
            self.words.push(word);
        }
        // Without a list, a loop takes the positional parameters.
        if self.is_loop() {
            self.looped = self.words.get(1).filter(|_| self.words.len() == 2).cloned();
        }
        None
    }

    fn keyword(&self, word: &str) -> Option<Keyword> {
        const OPENERS: [&str; 7] = ["{", "if", "while", "until", "for", "select", "case"];
        let ends = matches!(word, "}" | "fi" | "done" | "esac");
        if self.in_pattern {
            return (word == "esac").then_some(Keyword::Close);
        }
        if ends && self.is_at_name() {
            return Some(Keyword::Close);
        }
        let opener = OPENERS.into_iter().find(|opener| *opener == word)?;
        // `coproc NAME { …; }` and `for … { …; }`
        let is_named = self.words.first().is_some_and(|first| first == "coproc") && self.words.len() == 2;
        let begins = self.is_at_name() || is_named || self.is_loop() && opener == "{";
        begins.then_some(Keyword::Open(opener))
    }

    fn is_loop(&self) -> bool {
        self.words.first().is_some_and(|first| matches!(first.as_str(), "for" | "select"))
    }

    /// Whether the next word names the command.
    fn is_at_name(&self) -> bool {
        !self.in_pattern && runners::name_at(&self.words) == self.words.len()
    }

    /// Ends a group or another compound command, after which redirections or a reserved word follow.
    pub(super) fn end_group(&mut self) {
        (self.word, self.role, self.is_quoted) = Default::default();
        if let Some((values, true)) = self.test.take() {
            let compares = |at: usize| self.words.get(at).is_some_and(|word| COMPARISONS.contains(&&**word));
            let is_compared = |at: usize| at >= MAX_WORDS || compares(at + 1) || at > 0 && compares(at - 1);
            let values = values.into_iter().filter(|value| is_compared(value.word));
            self.compared.extend(values.map(|value| (value.slot, value.refusal)));
            let words = self.words.iter().enumerate().filter(|(at, _)| is_compared(*at));
            self.computed.extend(words.map(|(_, word)| word.clone()));
        }
        self.forget_words();
    }

    /// Forgets the words, but what the variable of a loop takes.
    fn forget_words(&mut self) {
        if let (true, Some(name)) = (self.is_loop(), self.words.get(1)) {
            // The keys of a list are no values.
            let is_keys = |word: &str| word.starts_with('!') && word.ends_with(']');
            let taken = self.words.iter().skip(2).filter(|word| !is_keys(word));
            self.assigned.extend(taken.map(|word| (name.clone(), word.clone())));
        }
        self.words.clear();
        self.interpreters.clear();
    }

    /// Begins a word that is for something else than an argument.
    pub(super) fn begin(&mut self, role: Role) {
        self.role = role;
    }

    /// Forgets the present word if it is the number before a redirection, or the variable for one, as in `{name}>`.
    pub(super) fn drop_number(&mut self) {
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_variable = |word: &str| word.len() > 2 && word.starts_with('{') && word.ends_with('}');
        self.word.take_if(|word| is_number(word) || is_variable(word));
    }

    /// Whether the text is within `[[ … ]]`, where separators have another meaning.
    pub(super) fn in_test(&self) -> bool {
        self.test.is_some()
    }

    /// Whether a pattern of a `case` is being read.
    pub(super) fn in_pattern(&self) -> bool {
        self.in_pattern
    }

    /// Begins a pattern, if this is within a `case`.
    pub(super) fn begin_pattern(&mut self) {
        self.in_pattern = self.opener == Some("case");
    }

    /// Ends a pattern of a `case`; a command follows.
    pub(super) fn end_pattern(&mut self) {
        self.in_pattern = false;
    }

    /// Whether nothing of the command was read, but what is piped to it.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.word.is_none() && self.values.is_empty() && !self.runs_input
    }

    /// Notes that a command within evaluates what it reads: what this one reads, or what it writes.
    pub(super) fn runs_within(&mut self) {
        if self.role == Role::Output {
            self.runs_output = true;
        } else {
            self.runs_input = true;
        }
    }

    /// Ends the command; the next one reads its output if it is in a pipe.
    pub(super) fn end(&mut self, in_pipe: bool) -> Ended {
        let next = Self { opener: self.opener, in_pattern: self.in_pattern, ..Self::default() };
        let mut done = std::mem::replace(self, next);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let numbers = owned(builtins::numbers(&done.words));
        let read = owned(builtins::read(&done.words));
        let mut computed = owned(builtins::computed(&done.words));
        let evaluates_input = done.evaluates_input();
        let mut assigned = builtins::assignments(&done.words);
        done.end_group();
        assigned.append(&mut done.assigned);
        let evaluated = |source: Source| (source, Refusal::Evaluated);
        let mut refused = Vec::new();
        let runs_input = evaluates_input && done.input.is_empty();
        // What is refused is not looked at again, however long the pipe is.
        if evaluates_input || done.runs_output {
            refused.extend(done.input.drain(..).map(evaluated));
        }
        if done.runs_output {
            refused.extend(done.values.drain(..).map(evaluated));
        }
        refused.extend(done.compared.iter().map(|(slot, refusal)| (Source::Slot(*slot), *refusal)));
        computed.append(&mut done.computed);
        let piped = if in_pipe { done.values.clone() } else { Vec::new() };
        if in_pipe {
            self.input = done.input;
            self.input.extend(done.values);
        }
        Ended { refused, runs_input, piped, numbers, read, computed, looped: done.looped, assigned }
    }

    /// Why no value may stand in the present word: it would be evaluated.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let present = self.word.as_deref().unwrap_or_default();
        if self.role != Role::Argument {
            return None;
        }
        let by_interpreter = |Named { at, known, is_program }: &Named| {
            if self.words.len() > MAX_WORDS || self.interpreters.len() > MAX_INTERPRETERS {
                return Some(Refusal::Evaluated);
            }
            known.refusal(&self.words[at + 1..], present, *is_program)
        };
        let by_bash = if self.in_pattern { None } else { builtins::refusal(&self.words, present) };
        by_bash.or_else(|| self.interpreters().find_map(by_interpreter))
    }

    /// Whether a value that comes now would name the command to run.
    pub(super) fn is_named_by_value(&self) -> bool {
        let begins = self.word.as_ref().is_none_or(String::is_empty);
        begins && self.role == Role::Argument && !self.in_pattern && runners::is_name(&self.words)
    }

    /// The variable that takes a value which comes now.
    pub(super) fn assigned(&self) -> Option<&str> {
        builtins::assigned(&self.words, self.word.as_deref().unwrap_or_default())
    }

    /// Whether bash computes or runs what a variable holds that is named now.
    pub(super) fn computes(&self) -> bool {
        let present = self.word.as_deref().unwrap_or_default();
        self.role == Role::Argument && !self.in_pattern && builtins::computes(&self.words, present)
    }

    /// Whether a shell runs the text that comes now.
    pub(super) fn runs_shell(&self) -> bool {
        const SHELLS: [&str; 10] = ["bash", "sh", "dash", "ash", "ksh", "zsh", "eval", "trap", "su", "ssh"];
        self.words.iter().any(|word| SHELLS.contains(&name(word)))
    }

    /// What the present word is for.
    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// Whether the command evaluates its standard input.
    fn evaluates_input(&self) -> bool {
        let command = self.words.get(runners::name_at(&self.words)).map_or("", String::as_str);
        let replaces = |word: &String| word.starts_with("--replace") || is_option(word, "IiJ");
        let each = match self.words.iter().find(|word| matches!(name(word), "xargs" | "parallel")) {
            None => Each::None,
            Some(word) if name(word) == "xargs" && !self.words.iter().any(replaces) => Each::Appended,
            Some(_) => Each::Replaced,
        };
        let is_sudo = self.words.iter().any(|word| name(word) == "sudo");
        let runs_shell = command.is_empty() && is_sudo && self.words.iter().any(|word| is_option(word, "is"));
        let runs_words = || self.words.last().is_some_and(|word| RUN_INPUT.contains(&name(word)));
        self.runs_input
            || matches!(command, "source" | ".")
            || runs_shell
            || each != Each::None && runs_words()
            || self.interpreters().any(|Named { at, known, .. }| {
                known.evaluates_input(self.words.get(at + 1..).unwrap_or_default(), each)
            })
    }

    fn interpreters(&self) -> impl Iterator<Item = &Named> {
        let command = self.words.get(runners::name_at(&self.words));
        let is_inert = command.is_some_and(|word| INERT.contains(&name(word)));
        self.interpreters.iter().filter(move |_| !is_inert)
    }
}
