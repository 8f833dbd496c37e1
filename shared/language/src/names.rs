//! The rules for the names of workflows, tasks, task types, inputs, parameters, queues and signals.

use model::TypeName;

use crate::diagnostic::Report;
use crate::read::Word;

/// The maximum length of a name.
pub(crate) const MAX_CHARS: usize = 100;

/// A rule for names, with the words that explain it.
pub(crate) struct Rule {
    fits: fn(&str) -> bool,
    /// The same as a regular expression, for the schemas that are published.
    pub(crate) pattern: &'static str,
    words: &'static str,
}

/// The rule for names of workflows and queues.
pub(crate) const PLAIN: Rule = Rule {
    fits: is_plain,
    pattern: "^[a-z0-9-]+$",
    words: "a name has only lowercase letters, digits and `-`, and at most 100 characters",
};

/// Tasks; two underscores in a row are kept for the children of fan-outs.
pub(crate) const TASK: Rule = Rule {
    fits: is_task,
    pattern: "^(_|_?([a-z0-9-]_?)+)$",
    words: "a task's name has only lowercase letters, digits, `-` and single `_` (`a__3` is a child of the fan-out `a`), and at most 100 characters",
};

/// Inputs, which are written after a dot in templates.
pub(crate) const INPUT: Rule = Rule {
    fits: is_input,
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    words: "an input's name has only letters, digits and `_`, does not start with a digit, and has at most 100 characters",
};

/// Parameters of workflow templates, which are written after a dot too.
pub(crate) const PARAMETER: Rule = Rule {
    fits: is_input,
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    words: "a parameter's name has only letters, digits and `_`, does not start with a digit, and has at most 100 characters",
};

/// Fields of a form, which are written after a dot too.
pub(crate) const FIELD: Rule = Rule {
    fits: is_input,
    pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
    words: "a field's name has only letters, digits and `_`, does not start with a digit, and has at most 100 characters",
};

/// Signals, whose senders must know them before anything runs.
pub(crate) const SIGNAL: Rule = Rule {
    fits: is_signal,
    pattern: "^[a-z0-9_-]+$",
    words: "a signal's name has only lowercase letters, digits, `-` and `_`, and at most 100 characters",
};

/// Custom task types, which differ from built-in ones by their dot.
pub(crate) const TYPE: Rule = Rule {
    fits: is_type,
    pattern: TypeName::PATTERN,
    words: "a task type's name has two or more words of lowercase letters, digits, `-` and `_`, with dots between them, and at most 100 characters",
};

/// Reports a name that the rule does not allow.
pub(crate) fn check(name: Word<'_>, rule: &Rule, report: &mut Report<'_>) {
    if let Some((message, hint)) = refusal(name.text, rule) {
        report.add(name.at, message, hint);
    }
}

/// Why the rule does not allow a name, and a better one.
pub(crate) fn refusal(name: &str, rule: &Rule) -> Option<(String, Option<String>)> {
    if (rule.fits)(name) && name.len() <= MAX_CHARS {
        return None;
    }
    let words = || name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let joined = ["-", "_", "."].map(|between| words().collect::<Vec<_>>().join(between).to_lowercase());
    let hint = joined.iter().find(|name| (rule.fits)(name)).map(|better| format!("such as `{better}`"));
    Some((format!("`{}` is not a valid name: {}", name.escape_debug(), rule.words), hint))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_task(name: &str) -> bool {
    is_signal(name) && !name.contains("__")
}

fn is_signal(name: &str) -> bool {
    is_plain(&name.replace('_', "-"))
}

fn is_type(name: &str) -> bool {
    TypeName::new(name).is_some()
}

fn is_input(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
