//! Commands of `ebb` that documents mention.

use std::path::Path;
use std::{fs, iter};

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use ebb::cli::Cli;

/// The commands of a document that `ebb` does not take, with the reason. A command in a sentence may leave out its arguments,
/// and a word in capital letters stands for a value.
pub(crate) fn rejected(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap();
    let name = document.display();
    commands(&text)
        .into_iter()
        .filter_map(|(command, is_whole)| {
            Some(format!("{name}: `{command}`: {}", rejection(&command, is_whole)?))
        })
        .collect()
}

/// Every command, and whether it is one of a block, which people copy as a whole.
fn commands(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut language = None;
    for line in text.replace("\\\n", " ").lines() {
        let line = line.trim();
        match (line.strip_prefix("```"), &language) {
            (Some(_), Some(_)) => language = None,
            (Some(name), None) => language = Some(name.to_owned()),
            (None, Some(name)) if ["sh", "bash", "console"].contains(&name.as_str()) => {
                found.extend(
                    in_script(line.trim_start_matches("$ ")).into_iter().map(|command| (command, true)),
                );
            }
            (None, Some(_)) => (),
            (None, None) => {
                let spans = line.split('`').skip(1).step_by(2);
                found.extend(
                    spans.filter(|span| span.starts_with("ebb ")).map(|span| (span.to_owned(), false)),
                );
            }
        }
    }
    found
}

/// The commands of a line of a script: at its beginning, after what separates commands, and within `$(…)`.
fn in_script(line: &str) -> Vec<String> {
    let line = line.split(" # ").next().unwrap().split("  #").next().unwrap();
    let mut parts = line.split("$(");
    let outer = parts.next().unwrap();
    // What is substituted ends with its parenthesis.
    let scripts = iter::once(outer).chain(parts.map(|part| part.split(')').next().unwrap()));
    let commands = scripts.flat_map(|script| script.split("| ").flat_map(|part| part.split("&& ")));
    let commands = commands.flat_map(|part| part.split("; "));
    let commands = commands.filter_map(|part| part.trim().trim_start_matches("cargo ").strip_prefix("ebb "));
    commands.map(|rest| format!("ebb {rest}")).collect()
}

/// Why `ebb` does not take a command, if it does not.
fn rejection(command: &str, is_whole: bool) -> Option<String> {
    let words = words(command);
    let is_cut = words.iter().any(|word| word.contains('…'));
    let words = words.into_iter().take_while(|word| !word.contains('…'));
    let error = Cli::command().try_get_matches_from(words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::InvalidValue
        | ErrorKind::ValueValidation
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if !is_whole || is_cut =>
        {
            true
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => match error.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(value)) => is_placeholder(value),
            _ => false,
        },
        _ => false,
    };
    (!is_fine).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Whether a word stands for a value: `RUN`, `$day`.
fn is_placeholder(word: &str) -> bool {
    word.starts_with('$')
        || word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_' || letter == '-')
}

/// Words as a shell separates them, up to a redirection.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '>' | '<' | '|' | '&' | ';') => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn commands_that_do_not_exist_are_found() {
    let text = "`ebb runs --all-of-them` and `ebb run show` and `ebb worker drain ID`\n\
                ```sh\nebb tokens create ci --role author | tr -d x   # one\nebb tokens create\nx=\"$(ebb nonsense)\" $(ebb token)\n\
                $ ebb run show RUN && ebb run show nothing\n```\n```text\nebb output of it\n```\n";
    let found: Vec<(String, bool)> = commands(text);
    let wrong = found.iter().filter(|(command, is_whole)| rejection(command, *is_whole).is_some());
    let wrong: Vec<&str> = wrong.map(|(command, _)| command.trim()).collect();
    assert_eq!(found.len(), 9, "{found:?}");
    assert_eq!(
        wrong,
        ["ebb runs --all-of-them", "ebb tokens create", "ebb nonsense", "ebb run show nothing"]
    );
}
