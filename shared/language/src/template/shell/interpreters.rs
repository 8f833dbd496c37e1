//! The programs that evaluate text, and which of their arguments that is.

mod known;

use super::Refusal;
use super::arguments::Arguments;
use known::INTERPRETERS;

/// A program that evaluates text.
#[derive(Clone, Copy)]
pub(super) struct Interpreter {
    names: &'static [&'static str],
    /// The options whose value is code; of a shell, those that make its first operand code.
    pub(super) code: Options,
    /// The options whose value is a file with code, or a module.
    pub(super) script: Options,
    /// The options with any other value.
    pub(super) values: Options,
    /// Long options with two values, such as `--arg NAME VALUE`.
    pub(super) pairs: &'static [&'static str],
    /// Short options whose value, if any, is in the same word.
    pub(super) attached: &'static str,
    /// Operands that only say what to do with the others.
    pub(super) verbs: &'static [&'static str],
    pub(super) operands: Operands,
    /// Short options with which it opens its operands, and may run them.
    pub(super) opening: &'static str,
    /// Until where a value could be an option; some of these are code.
    pub(super) options_until: Until,
    input: Input,
    /// Whether its name means it wherever it stands, so that programs are seen through that are not known as runners.
    is_distinct: bool,
}

/// Some options of a program.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// The letters of the short ones.
    pub(super) short: &'static str,
    /// Long ones, and others that are whole words.
    pub(super) long: &'static [&'static str],
}

/// What the arguments of a program are to it that belong to no option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// The first is code after the option for it, otherwise a script; arguments follow.
    Shell,
    /// The first is a script unless an option gave code; `repeats` says that more code may follow the first.
    Script {
        repeats: bool,
    },
    /// The first is code unless an option gave code or a script.
    Code,
    /// Every one after the first is code.
    CodeAfterFirst,
    AllCode,
    Data,
}

/// Where the options of a program end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// It is not checked, since no option would be run, or since its arguments are too many to know.
    Unchecked,
    /// At the first operand, or after `--`.
    Operand,
    /// After `--`, and nowhere before: options may follow operands.
    Separator,
}

/// Whether a program evaluates its standard input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Never,
    /// Unless its arguments have code or a script.
    Otherwise,
    Always,
    /// The command for another machine reads it, or the shell there if there is none.
    Remote,
}

/// Whether the input of a command becomes arguments of an interpreter, as with `xargs`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Each {
    None,
    /// They follow the arguments that are there.
    Appended,
    /// They may stand within these.
    Replaced,
}

/// The maximum number of words in a command for another machine that may be given something to read.
const MAX_REMOTE_WORDS: usize = 50;

impl Interpreter {
    /// The interpreter that a word names, with or without a folder; `python3.12` is `python3`. Most names mean it only
    /// where a program's name stands.
    pub(super) fn called(word: &str, is_program: impl Fn() -> bool) -> Option<&'static Self> {
        let name = name(word);
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        let is_called = |known: &&Self| {
            known.names.contains(&name) || stem.starts_with("python") && known.names.contains(&stem)
        };
        INTERPRETERS.iter().find(is_called).filter(|known| known.is_distinct || is_program())
    }

    /// Why no value may continue the word that follows these arguments, of which the beginning is known. Only where the
    /// name of a program stands is it known that a word would be an option.
    pub(super) fn refusal(&self, arguments: &[String], present: &str, is_program: bool) -> Option<Refusal> {
        let arguments = Arguments::read(self, arguments);
        if arguments.is_code_next(self, present) {
            return Some(Refusal::Evaluated);
        }
        if arguments.is_opened_next(self, present) {
            return Some(Refusal::Opened);
        }
        (is_program && arguments.may_be_option(self, present)).then_some(Refusal::Option)
    }

    /// Whether it evaluates its standard input, or the arguments that this becomes.
    pub(super) fn evaluates_input(&self, arguments: &[String], each: Each) -> bool {
        let arguments = Arguments::read(self, arguments);
        let is_each = each != Each::None;
        if is_each && (self.operands == Operands::AllCode || arguments.opens_operands) {
            return true;
        }
        match self.input {
            Input::Never => match each {
                Each::None => false,
                Each::Appended => arguments.is_code_next(self, "") || arguments.may_be_option(self, ""),
                Each::Replaced => self.operands != Operands::Data || self.options_until != Until::Unchecked,
            },
            Input::Always => true,
            Input::Remote => arguments.rest.is_empty() || may_run_input(arguments.rest),
            Input::Otherwise if arguments.has_code => match each {
                Each::None => false,
                // More options may follow, and among them code.
                Each::Appended => !arguments.ended,
                Each::Replaced => true,
            },
            Input::Otherwise => arguments.selects_input || arguments.script.is_none_or(is_standard_input),
        }
    }
}

/// The name of a program without its folder.
pub(super) fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a command for another machine may run what it reads. A shell there reads its words again.
fn may_run_input(words: &[String]) -> bool {
    let text = words.join(" ");
    let is_separator = |c: char| c.is_whitespace() || "'\";&|(){}<>".contains(c);
    let words: Vec<String> =
        text.split(is_separator).filter(|word| !word.is_empty()).map(Into::into).collect();
    // A command for a third machine is not looked into.
    let runs =
        |known: &Interpreter, rest| known.input == Input::Remote || known.evaluates_input(rest, Each::None);
    let may_run = |(index, word): (usize, &String)| {
        let is_unclear = word.contains(['$', '`', '\\']);
        let runs_words = matches!(name(word), "eval" | "source" | "." | "xargs" | "sudo" | "doas" | "exec");
        let known = Interpreter::called(word, || true);
        is_unclear || runs_words || known.is_some_and(|known| runs(known, &words[index + 1..]))
    };
    words.is_empty() || words.len() > MAX_REMOTE_WORDS || words.iter().enumerate().any(may_run)
}

/// Whether a script's path leads to what the command itself is given to read.
fn is_standard_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin") || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/")
}

/// Whether a word is a short option with one of these letters, such as `-lc`.
pub(super) fn is_option(word: &str, letters: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| {
        let flags = rest.find(|c: char| !c.is_ascii_alphabetic()).map_or(rest, |end| &rest[..end]);
        flags.contains(|c| letters.contains(c))
    })
}
