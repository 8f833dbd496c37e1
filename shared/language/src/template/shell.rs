//! A command line for bash: where values go in it, and how each is named there.
//!
//! A value is never part of the text. It stands in the environment, and the text names its variable so that
//! bash expands it to one word, whatever the quotes around it. Should the quotes ever be misread, the value may
//! be split or its name may show; bash still does not read it as code. Where bash would do that even with
//! a variable, as in arithmetic, the expression is refused, and so is one in text that a known program would run again,
//! as in `bash -c "…"` or `awk '…'`. What an unknown program makes of its arguments cannot be known here.

mod commands;
mod scanner;

use std::ops::Range;

pub(super) use scanner::slots;

/// An expression in a command line.
pub(super) struct Slot {
    /// Its bytes, braces included.
    pub(super) span: Range<usize>,
    /// What is around it, or why no value can stand there.
    pub(super) quoting: Result<Quoting, Refusal>,
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
    /// Beside `-eq` and its like, within `[[ … ]]`.
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
        }
    }
}
