//! The words of bash that read their arguments as code, or as names in which bash evaluates a subscript.

use super::Refusal;
use super::interpreters::is_option;
use super::runners::name_at;
use super::variables;

/// Words that do that with any of their arguments; `enable` takes a library's path.
const EVALUATING: [&str; 17] = [
    "eval",
    "let",
    "trap",
    "source",
    ".",
    "alias",
    "compgen",
    "complete",
    "unset",
    "read",
    "getopts",
    "mapfile",
    "readarray",
    "enable",
    "hash",
    "bind",
    "fc",
];

/// Words that give variables values and attributes.
const DECLARING: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

/// Why no value may continue the present word after these words: bash would evaluate it.
pub(super) fn refusal(words: &[String], present: &str) -> Option<Refusal> {
    let at = name_at(words);
    let assigned = variable(present).filter(|name| variables::is_evaluated(name));
    let Some((name, arguments)) = words.get(at..).and_then(<[String]>::split_first) else {
        return (assigned.is_some() && at == words.len()).then_some(Refusal::Variable);
    };
    let last = arguments.last().map_or(name.as_str(), String::as_str);
    let evaluates = match name.as_str() {
        name if DECLARING.contains(&name) && assigned.is_some() => return Some(Refusal::Variable),
        // They take a value for a list.
        "declare" | "typeset" => return Some(Refusal::Declared),
        "local" | "export" | "readonly" => {
            let has_attributes = arguments.iter().any(|word| is_option(word, "aAin"));
            return (variable(present).is_none() || has_attributes).then_some(Refusal::Declared);
        }
        "printf" if last == "-v" || present.starts_with("-v") => true,
        "printf" => return begins_option(arguments, present, "v").then_some(Refusal::Format),
        "wait" => last == "-p" || begins_option(arguments, present, "p"),
        "jobs" => arguments.iter().any(|word| word == "-x") || begins_option(arguments, present, ""),
        // A value before it may be the operator.
        "test" | "[" => last == "-v" || last.is_empty(),
        "[[" => last == "-v",
        name => EVALUATING.contains(&name),
    };
    evaluates.then_some(Refusal::Evaluated)
}

/// Whether bash computes or runs what a variable holds that continues the present word after these words.
pub(super) fn computes(words: &[String], present: &str) -> bool {
    let Some((name, arguments)) = words.get(name_at(words)..).and_then(<[String]>::split_first) else {
        return false;
    };
    let last = arguments.last().map_or("", String::as_str);
    match name.as_str() {
        "eval" | "let" | "trap" | "unset" | "read" | "getopts" | "mapfile" | "readarray" => true,
        "printf" => last == "-v" || present.starts_with("-v"),
        "test" | "[" | "[[" => last == "-v",
        "wait" => last == "-p",
        name if DECLARING.contains(&name) => {
            variable(present).is_none() || arguments.iter().any(|word| is_option(word, "aAin"))
        }
        _ => false,
    }
}

/// The variables to which a command assigns, each with what it takes.
pub(super) fn assignments(words: &[String]) -> Vec<(String, String)> {
    let named = words
        .iter()
        .filter_map(|word| Some((variable(word)?.to_owned(), word.split_once('=')?.1.to_owned())));
    named.collect()
}

/// The words of a command in which bash computes every name.
pub(super) fn computed(words: &[String]) -> Vec<&str> {
    let Some((name, arguments)) = words.get(name_at(words)..).and_then(<[String]>::split_first) else {
        return Vec::new();
    };
    let is_number = DECLARING.contains(&name.as_str()) && arguments.iter().any(|word| is_option(word, "in"));
    let values = arguments.iter().map(|word| match word.split_once('=') {
        Some((_, value)) if is_number => value,
        _ => word.as_str(),
    });
    values.filter(|_| is_number || name == "let").collect()
}

/// Whether a value that continues the present word may be an option of a word of bash, or one more in the same word. The
/// options with one of these letters have a value.
fn begins_option(arguments: &[String], present: &str, valued: &str) -> bool {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" || !argument.starts_with('-') {
            return false;
        }
        if argument.ends_with(|last| valued.contains(last)) {
            arguments.next();
        }
    }
    present.is_empty() || present.starts_with('-')
}

/// The variables that a command makes numbers or references: bash then evaluates what is assigned to them, also later.
/// An empty name stands for one that cannot be known.
pub(super) fn numbers(words: &[String]) -> Vec<&str> {
    let Some((name, arguments)) = words.get(name_at(words)..).and_then(<[String]>::split_first) else {
        return Vec::new();
    };
    if !DECLARING.contains(&name.as_str()) || !arguments.iter().any(|word| is_option(word, "in")) {
        return Vec::new();
    }
    arguments.iter().filter(|word| !word.starts_with(['-', '+'])).map(|word| identifier(word)).collect()
}

/// The variables that a command reads from its input, among which may be values of its options.
pub(super) fn read(words: &[String]) -> Vec<&str> {
    let Some((name, arguments)) = words.get(name_at(words)..).and_then(<[String]>::split_first) else {
        return Vec::new();
    };
    let usual = match name.as_str() {
        "read" => "REPLY",
        "mapfile" | "readarray" => "MAPFILE",
        _ => return Vec::new(),
    };
    let named = arguments.iter().map(|word| word.strip_prefix("-a").unwrap_or(word));
    let named = named.filter(|word| !word.is_empty() && !word.starts_with('-'));
    named.map(identifier).chain([usual]).collect()
}

/// The variable that takes a value which continues the present word after these words.
pub(super) fn assigned<'w>(words: &'w [String], present: &'w str) -> Option<&'w str> {
    if let Some("for" | "select") = words.first().map(String::as_str) {
        return words.get(1).map(String::as_str);
    }
    let at = name_at(words);
    let word = |index: usize| words.get(at + index).map(String::as_str);
    match (word(0), word(1)) {
        (Some("printf"), Some("-v")) => word(2).map(identifier),
        (Some("printf"), Some(option)) => option.strip_prefix("-v").map(identifier),
        (Some(name), _) if DECLARING.contains(&name) => variable(present),
        (None, _) if at == words.len() => variable(present),
        _ => None,
    }
}

/// The variable to which the beginning of a word assigns, or to an element of which.
fn variable(word: &str) -> Option<&str> {
    let name = identifier(word);
    let rest = &word[name.len()..];
    let rest = match rest.starts_with('[') {
        true => &rest[rest.find("]=").or_else(|| rest.find("]+="))? + 1..],
        false => rest,
    };
    let assigns = rest.starts_with('=') || rest.starts_with("+=");
    (assigns && name.starts_with(|c: char| !c.is_ascii_digit())).then_some(name)
}

/// The name with which a word begins.
pub(super) fn identifier(word: &str) -> &str {
    let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &word[..end.unwrap_or(word.len())]
}
