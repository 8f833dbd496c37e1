//! The reference of the `ebb` command, from the definitions that it parses its arguments by.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, CommandFactory};
use ebb::cli::Cli;

const HEAD: &str = "<!-- Generated from cli/src/args by cli/tests/documents/cli.rs. -->

# Command line

Every command takes the [global options](#global-options). [Exit codes](errors.md#exit-codes) are the same for all commands.

";

pub(crate) fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("| command | does |\n|---|---|\n");
    for command in commands(&root) {
        let name = command.get_name();
        writeln!(page, "| [`ebb {name}`](#ebb-{name}) | {} |", about(command)).unwrap();
    }
    page.push_str("\n## Global options\n\n");
    let global: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    options(&mut page, &global);
    for command in commands(&root) {
        describe(&mut page, command, &format!("ebb {}", command.get_name()), 2);
    }
    page.trim_end().to_owned() + "\n"
}

fn commands(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn describe(page: &mut String, command: &Command, path: &str, level: usize) {
    writeln!(page, "\n{} `{path}`\n\n{}.\n", "#".repeat(level), about(command)).unwrap();
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| {
            !arg.is_global_set()
                && !arg.is_hide_set()
                && !matches!(
                    arg.get_action(),
                    ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
                )
        })
        .collect();
    options(page, &own);
    if let Some(help) = command.get_after_help() {
        examples(page, &help.to_string());
    }
    for inner in commands(command) {
        describe(page, inner, &format!("{path} {}", inner.get_name()), level + 1);
    }
}

fn options(page: &mut String, args: &[&Arg]) {
    if args.is_empty() {
        return;
    }
    page.push_str("| argument | meaning |\n|---|---|\n");
    for arg in args {
        writeln!(page, "| `{}` | {} |", spelled(arg), meaning(arg)).unwrap();
    }
}

/// How an argument is written: `NAME`, `--flag` or `-i, --input <NAME=VALUE>`.
fn spelled(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>").replace('|', "\\|")).collect();
    let values = values.join(" ");
    let Some(long) = arg.get_long() else { return values };
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    if takes_value { format!("{short}--{long} {values}") } else { format!("{short}--{long}") }
}

fn meaning(arg: &Arg) -> String {
    let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if arg.get_action().takes_values() && !words.is_empty() {
        write!(meaning, ". One of {}", words.join(", ")).unwrap();
    }
    let usual: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if arg.get_action().takes_values() && !usual.is_empty() {
        write!(meaning, ". Default: {}", usual.join(", ")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(meaning, ". Environment: `{}`", variable.to_string_lossy()).unwrap();
    }
    meaning.replace('|', "\\|")
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// What stands below a command's help: lines that are indented are for the shell, the others are sentences.
fn examples(page: &mut String, help: &str) {
    for paragraph in help.split("\n\n") {
        let (shell, prose): (Vec<&str>, Vec<&str>) =
            paragraph.lines().partition(|line| line.starts_with("  "));
        if !prose.is_empty() {
            writeln!(page, "\n{}", prose.join(" ")).unwrap();
        }
        if !shell.is_empty() {
            let lines: Vec<&str> = shell.iter().map(|line| line.trim_start()).collect();
            writeln!(page, "\n```sh\n{}\n```", lines.join("\n")).unwrap();
        }
    }
}
