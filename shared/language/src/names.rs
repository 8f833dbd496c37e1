//! What workflows, tasks, inputs and queues may be called.

use crate::diagnostic::Report;
use crate::read::Word;

const MAX_CHARS: usize = 100;

/// A rule for names, with the words that explain it.
pub(crate) struct Rule {
    fits: fn(&str) -> bool,
    says: &'static str,
}

/// Workflows and queues.
pub(crate) const PLAIN: Rule =
    Rule { fits: is_plain, says: "a name has only small letters, digits and `-`, at most 100 of them" };

/// Tasks; two underscores in a row are kept for the children that a task may get at run time.
pub(crate) const TASK: Rule = Rule {
    fits: is_task,
    says: "a task's name has only small letters, digits, `-` and single `_`, at most 100 of them",
};

/// Inputs, which are written after a dot in templates.
pub(crate) const INPUT: Rule = Rule {
    fits: is_input,
    says: "an input's name has only letters, digits and `_`, begins with no digit, and has at most 100 characters",
};

/// Reports a name that the rule does not allow.
pub(crate) fn check(name: Word<'_>, rule: &Rule, report: &mut Report<'_>) {
    if !(rule.fits)(name.text) || name.text.len() > MAX_CHARS {
        let words = || name.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let joined = ["-", "_"].map(|between| words().collect::<Vec<_>>().join(between).to_lowercase());
        let hint = joined.iter().find(|name| (rule.fits)(name)).map(|better| format!("such as `{better}`"));
        report.add(name.at, format!("`{}` is no valid name: {}", name.text.escape_debug(), rule.says), hint);
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_task(name: &str) -> bool {
    is_plain(&name.replace('_', "-")) && !name.contains("__")
}

fn is_input(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
