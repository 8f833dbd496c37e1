//! The level of a line, as programs write it.

use serde_json::Value;

use crate::log::Level;

/// How many words of a line are examined: a timestamp may take two of them, a thread and a logger others.
const MAX_WORDS: usize = 8;

/// Longer lines are not examined as JSON.
const MAX_JSON_BYTES: usize = 16 * 1024;

/// The level that a line names: `ERROR …`, `[WARN] …`, `ERROR:root:…`, `2026-01-01 12:00:00,123 ERROR name: …`, or the field
/// `level` or `severity` of a JSON object. Prose that only contains such a word names none.
pub(super) fn of(line: &str) -> Option<Level> {
    let line = line.trim_start();
    if line.starts_with('{') {
        return of_json(line);
    }
    let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
    let is_separator = |index: usize| matches!(words.get(index), Some(&("-" | "|")));
    for (index, word) in words.iter().enumerate() {
        if let Some(level) = of_word(word) {
            return Some(level);
        }
        let is_field = index > 0 && is_separator(index - 1) && is_separator(index + 1);
        if !(is_prefix(word) || is_separator(index) || is_field) {
            return None;
        }
    }
    None
}

/// A word that says only the level: in capitals, in brackets, or before a colon.
fn of_word(word: &str) -> Option<Level> {
    let bare = word.trim_start_matches(['[', '(', '<']);
    let is_bracketed = bare.len() < word.len();
    let end = bare.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(bare.len());
    let (name, rest) = bare.split_at(end);
    let follows = match rest.chars().next() {
        None => !is_bracketed,
        Some(']' | ')' | '>') => is_bracketed,
        Some(':' | '|') => true,
        Some(_) => false,
    };
    let is_marked = is_bracketed || name.chars().all(|character| character.is_ascii_uppercase());
    // In Python's default format the level stands before two colons; `Error: …` is what an exception looks like.
    named(name).filter(|_| follows && is_marked)
}

/// What may stand before the level: a timestamp, or a process or thread in brackets. A number is part of the text.
fn is_prefix(word: &str) -> bool {
    let is_bracketed = word.starts_with(['[', '(']) && word.ends_with([']', ')', ':']);
    let bare = word.trim_start_matches(['[', '(']);
    let is_long = bare.len() >= 10 && bare.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = is_long || bare.contains([':', '-', '.', '/']);
    is_bracketed || (is_time && bare.starts_with(|first: char| first.is_ascii_digit()))
}

fn of_json(line: &str) -> Option<Level> {
    if line.len() > MAX_JSON_BYTES {
        return None;
    }
    let object: Value = serde_json::from_str(line).ok()?;
    let field =
        ["level", "severity", "levelname", "log.level", "lvl"].iter().find_map(|name| object.get(name))?;
    match field {
        Value::String(name) => named(name),
        // Bunyan and pino number their levels.
        Value::Number(number) => Some(match number.as_f64()? {
            ..30.0 => Level::Debug,
            ..40.0 => Level::Info,
            ..50.0 => Level::Warning,
            _ => Level::Error,
        }),
        _ => None,
    }
}

/// The level of that name, in any case.
pub(super) fn named(name: &str) -> Option<Level> {
    Some(match name.to_ascii_lowercase().as_str() {
        "trace" | "debug" | "verbose" | "dbg" => Level::Debug,
        "info" | "information" | "notice" | "inf" | "default" => Level::Info,
        "warn" | "warning" | "wrn" => Level::Warning,
        "error" | "err" | "fatal" | "critical" | "crit" | "alert" | "emergency" | "panic" | "severe" => {
            Level::Error
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_formats_are_recognized() {
        for (line, level) in [
            ("ERROR cannot connect", Level::Error),
            ("  WARN: slow", Level::Warning),
            ("[WARN] disk is almost full", Level::Warning),
            ("[error] no such file", Level::Error),
            ("<info> started", Level::Info),
            ("DEBUG|x", Level::Debug),
            ("ERROR:root:it broke", Level::Error),
            ("CRITICAL:app.db:gone", Level::Error),
            ("2026-01-01 12:00:00,123 ERROR name: it broke", Level::Error),
            ("2026-01-01 12:00:00,123 - app - INFO - started", Level::Info),
            ("2026-01-01T12:00:00.123Z  WARN app::db: slow", Level::Warning),
            ("[2026-01-01 12:00:00] ERROR oops", Level::Error),
            ("12:00:00 [main] ERROR com.example.App - oops", Level::Error),
            (r#"{"level": "error", "message": "x"}"#, Level::Error),
            (r#"{"severity": "WARNING", "message": "x"}"#, Level::Warning),
            (r#"{"level": 30, "msg": "pino"}"#, Level::Info),
            (r#"{"level": 50, "msg": "pino"}"#, Level::Error),
        ] {
            assert_eq!(of(line), Some(level), "{line}");
        }
    }

    #[test]
    fn prose_and_data_have_no_level() {
        for line in [
            "",
            "error rates are fine",
            "Information about ERROR codes",
            "Loaded 12 rows, 0 ERROR rows",
            "3 ERROR rows",
            "Error: that is what an exception looks like",
            "WARNINGS are on",
            "ERRORS=3",
            "INFO-42 was closed",
            "12 ERRATA",
            "{not json ERROR}",
            r#"{"message": "level error"}"#,
            r#"{"level": {"deep": "error"}}"#,
            r#"["error"]"#,
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
