//! The parts of a command, and what is known once it has ended.

use super::super::Refusal;

/// What a program may read: a value that stands in a command, or a here-document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Source {
    Slot(usize),
    Document(usize),
}

/// What a word is for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) enum Role {
    #[default]
    Argument,
    /// Text to read, in a here-string or `<(…)`.
    Input,
    /// What reads the output, in `>(…)`.
    Output,
    /// The file of a redirection.
    File,
}

/// A reserved word that begins or ends a group of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Keyword {
    /// `{`, `if`, `while`, `until`, `for`, `select` or `case`.
    Open(&'static str),
    Close,
}

/// What is known when a command has ended.
#[derive(Default)]
pub(in super::super) struct Ended {
    pub(in super::super) refused: Vec<(Source, Refusal)>,
    /// Whether it evaluates what the commands around it are given to read.
    pub(in super::super) runs_input: bool,
    /// The values in it, if another command reads what it writes.
    pub(in super::super) piped: Vec<Source>,
    /// The variables that it makes numbers or references, and those that it reads.
    pub(in super::super) numbers: Vec<String>,
    pub(in super::super) read: Vec<String>,
    /// The words in which bash computes every name.
    pub(in super::super) computed: Vec<String>,
    /// The variable of a loop that takes the positional parameters.
    pub(in super::super) looped: Option<String>,
    /// The variables that it assigns to, and the words that they take.
    pub(in super::super) assigned: Vec<(String, String)>,
}
