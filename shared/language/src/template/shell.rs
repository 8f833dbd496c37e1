//! A command line for bash: where values go in it, and how each is named there.
//!
//! A value is never part of the text. It stands in the environment, and the text names its variable so that
//! bash expands it to one word, whatever the quotes around it. Should the quotes ever be misread, the value may
//! be split or its name may show; bash still does not read it as code. Where bash would do that even with
//! a variable, as in arithmetic, the expression is refused, and so is one in text that a known program would run again,
//! as in `bash -c "…"` or `awk '…'`. What an unknown program makes of its arguments cannot be known here.

mod arguments;
mod builtins;
mod commands;
mod computed;
mod interpreters;
mod runners;
mod scanner;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::BTreeSet;
use std::ops::Range;

pub(super) use computed::is_number;
pub(super) use scanner::read;
pub(super) use variables::is_evaluated;

/// A command line, as far as values matter in it.
pub(super) struct Line {
    pub(super) slots: Vec<Slot>,
    /// The variables that bash computes: what they hold must be a number.
    pub(super) computed: BTreeSet<String>,
}

/// An expression in a command line.
pub(super) struct Slot {
    /// Its bytes, braces included.
    pub(super) span: Range<usize>,
    /// What is around it, or why no value can stand there.
    pub(super) quoting: Result<Quoting, Refusal>,
    /// Whether its value reaches something that bash computes, perhaps by way of variables, and so must be a number.
    pub(super) is_computed: bool,
}

/// The quotes around an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quoting {
    /// No quotes around it.
    Bare,
    /// Double quotes, or a here-document.
    Double,
    Single,
}

impl Quoting {
    /// How a variable is named there.
    pub(super) fn reference(self, variable: &str) -> String {
        match self {
            Self::Bare => format!("\"${{{variable}}}\""),
            Self::Double => format!("${{{variable}}}"),
            Self::Single => format!("'\"${{{variable}}}\"'"),
        }
    }
}

/// Why an expression cannot be replaced by a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Within `$((…))`, `((…))`, `$[…]` or `name[…]`.
    Arithmetic,
    /// Within `[[ … ]]` with `-eq` or its like.
    Comparison,
    /// Within `${…}`, a parameter expansion.
    Parameter,
    Backticks,
    /// Within `$'…'`, where backslashes are escapes.
    Escapes,
    /// In a here-document whose delimiter is quoted.
    Literal,
    /// Right after a `$`.
    Dollar,
    /// In text that another interpreter runs, such as `bash -c "…"`.
    Evaluated,
    /// In a variable that bash, the loader or a program runs, such as `PATH`.
    Variable,
    /// In the arguments of `declare` and the like, or in a variable that they make a number or a reference.
    Declared,
    /// In a variable of bash's own that is a number, such as `RANDOM`.
    Number,
    /// Where `printf` has its format, which may be an option.
    Format,
    /// Where a known interpreter has its options, some of which are code.
    Option,
    /// In the name of a file that a program opens and that may be a command, as with `perl -n`.
    Opened,
    /// Where the name of a command stands.
    Name,
    /// In a variable that bash computes somewhere, if the value is no number.
    Computed,
}

impl Refusal {
    /// The problem, in a sentence.
    pub(super) fn message(self) -> String {
        let context = match self {
            Self::Arithmetic => "bash's arithmetic, which runs commands found in values",
            Self::Comparison => "a comparison of numbers in `[[ ]]`, which runs commands found in values",
            Self::Parameter => "`${…}`",
            Self::Backticks => "backticks",
            Self::Escapes => "`$'…'`",
            Self::Literal => "a here-document with a quoted delimiter",
            Self::Dollar => "a name that begins with `$`",
            Self::Evaluated => {
                "text that another interpreter runs, such as `bash -c`, `eval`, `awk` or `ssh`"
            }
            Self::Variable => {
                "a variable that decides what is run, such as `PATH`, `BASH_ENV`, `PAGER` or `LD_PRELOAD`"
            }
            Self::Declared => {
                "what bash evaluates to declare a variable, such as `declare`, or a variable with `-i` or `-n`"
            }
            Self::Number => {
                "a variable of bash that is a number, such as `RANDOM`, where it runs commands found in values"
            }
            Self::Format => "the format of `printf`, which takes a value that begins with `-v` for an option",
            Self::Option => {
                "the options of an interpreter, such as `perl`, `sed` or `psql`: some of these would be run"
            }
            Self::Opened => "the names of files for `perl` with `-n`, `-p` or `<>`, which runs some of them",
            Self::Name => "the place of a command's name, where the value would be run",
            Self::Computed => {
                "what bash computes, as in `(( ))`, `[[ … -gt … ]]`, a subscript or `eval`, also by way of a variable, unless they are numbers: commands in them would be run"
            }
        };
        format!("values cannot be inserted into {context}")
    }

    /// How to put it right.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Arithmetic => "compute it within the braces, such as `{{ inputs.n + 1 }}`",
            Self::Comparison => "write `[ … ]` for `[[ … ]]`, or compare within the braces",
            Self::Parameter => "give it a name with `env:` and use that",
            Self::Backticks => "write `$(…)` for the backticks",
            Self::Escapes => "use other quotes, or give it a name with `env:`",
            Self::Literal => {
                "take the quotes off the delimiter, or give the value a name with `env:` and read it there"
            }
            Self::Dollar => "leave out the `$`: write `{{ … }}`",
            Self::Evaluated => "pass the value through `env:`, and let the program read the variable",
            Self::Variable => {
                "write its value, choose with `case`, or use a variable of another name; name a program by its whole path instead of changing `PATH`"
            }
            Self::Declared => "assign it without a declaration, as in `day={{ … }}`",
            Self::Number => "choose another name for the variable",
            Self::Format => "write `printf '%s' {{ … }}`",
            Self::Option => {
                "begin the word with text, as in `./{{ … }}`, put `--` before it, or write an option's value as `--name={{ … }}`"
            }
            Self::Opened => "let it read the file from its input, as in `perl -ne '…' < {{ … }}`",
            Self::Name => {
                "write the name, or choose with `case`; compare a condition, as in `[ {{ inputs.full }} = true ]`"
            }
            Self::Computed => {
                "compare with `[ \"$n\" -gt 3 ]`, or make it a number: an input of type `integer`, or `{{ … | int }}`"
            }
        }
    }
}
