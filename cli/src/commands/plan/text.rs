//! A plan as text, with a sign before each line: `+` adds, `-` removes, `~` changes.

use api::compare::{Difference, FieldChange, Parts};
use api::schedules::NextView;
use model::Schedule;
use serde_json::Value;

use super::{Change, Plan, Planned, Unfinished, fields};
use crate::output::{self, Colour, Palette};

/// Longer values are cut.
const MAX_VALUE_CHARS: usize = 60;

/// The maximum number of changed lines to show.
const MAX_LINES: usize = 20;

/// The whole plan; `command` applies it.
pub(super) fn plan(plan: &Plan, command: &str, palette: Palette) -> String {
    let mut text = Text { palette, lines: Vec::new() };
    for planned in plan.workflows.iter().filter(|planned| planned.change != Change::Unchanged) {
        workflow(&mut text, planned);
    }
    for name in &plan.archive {
        text.line(0, '-', format!("archive {name}"));
    }
    let unchanged = plan.workflows.iter().filter(|planned| planned.change == Change::Unchanged);
    let unchanged: Vec<&str> = unchanged.map(|planned| planned.name.as_str()).collect();
    if !unchanged.is_empty() {
        text.line(0, '=', format!("unchanged: {}", unchanged.join(", ")));
    }
    if !plan.only_on_server.is_empty() {
        let names = plan.only_on_server.join(", ");
        text.line(0, '?', format!("only on the server, left alone: {names}"));
    }
    text.lines.push(String::new());
    text.lines.push(summary(plan, command));
    text.lines.join("\n")
}

fn summary(plan: &Plan, command: &str) -> String {
    let count = |change| plan.workflows.iter().filter(|planned| planned.change == change).count();
    let counts = [
        (count(Change::New), "new"),
        (count(Change::Changed), "changed"),
        (count(Change::Archived), "restored"),
        (plan.archive.len(), "archived"),
        (count(Change::Unchanged), "unchanged"),
        (plan.only_on_server.len(), "only on the server"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let counted = if counted.is_empty() { "no workflows".into() } else { counted.join(", ") };
    match count(Change::Unchanged) == plan.workflows.len() && plan.archive.is_empty() {
        true => format!("{counted}: nothing to apply"),
        false => format!("{counted}: apply with `{command}`"),
    }
}

fn workflow(text: &mut Text, planned: &Planned) {
    let Planned { name, tasks, after, .. } = planned;
    let before = planned.before.unwrap_or_default();
    let versions = match before {
        _ if before == *after => format!("v{after}"),
        _ if before > *after => format!("v{before} → v{after} again"),
        _ => format!("v{before} → v{after}"),
    };
    match planned.change {
        Change::New => {
            let tasks = counted(*tasks, "task");
            text.line(0, '+', format!("{name} v{after}: new, {tasks}"));
            return instants(text, &planned.next);
        }
        Change::Archived => text.line(0, '+', format!("{name} {versions}: archived, would be active again")),
        Change::Changed | Change::Unchanged => text.line(0, '~', format!("{name} {versions}")),
    }
    difference(text, &planned.difference);
    if planned.difference.is_empty() && before != *after {
        text.line(1, '~', "only the order of fields");
    }
    instants(text, &planned.next);
    if let Some(kept) = kept(&planned.unfinished) {
        text.line(1, '=', kept);
    }
}

/// When it would run next, in UTC and in local time.
fn instants(text: &mut Text, next: &[NextView]) {
    for NextView { schedule, at, local } in next {
        let name = if schedule == Schedule::ONLY { String::new() } else { format!(" of {schedule}") };
        text.line(1, '=', format!("next{name}: {} ({local})", output::time(*at)));
    }
}

fn difference(text: &mut Text, difference: &Difference) {
    changes(text, 1, &difference.fields);
    parts(text, "input", &difference.inputs);
    parts(text, "task", &difference.tasks);
    for edge in &difference.edges.added {
        text.line(1, '+', format!("edge {edge}"));
    }
    for edge in &difference.edges.removed {
        text.line(1, '-', format!("edge {edge}"));
    }
}

fn parts(text: &mut Text, what: &str, parts: &Parts) {
    for name in &parts.added {
        text.line(1, '+', format!("{what} {name}"));
    }
    for name in &parts.removed {
        text.line(1, '-', format!("{what} {name}"));
    }
    for change in &parts.changed {
        text.line(1, '~', format!("{what} {}", change.name));
        changes(text, 2, &change.fields);
    }
}

fn changes(text: &mut Text, depth: usize, found: &[FieldChange]) {
    for FieldChange { field, before, after } in found {
        if field == "callbacks" {
            let lines = fields::callbacks(before.as_ref(), after.as_ref());
            lines.into_iter().for_each(|(sign, line)| text.line(depth, sign, line));
            continue;
        }
        let (label, shown) = (fields::label(field), |value: &Value| shown(field, value));
        match (before, after) {
            (Some(Value::String(before)), Some(Value::String(after)))
                if before.contains('\n') || after.contains('\n') =>
            {
                text.line(depth, '~', format!("{field}:"));
                changed_lines(text, depth + 1, before, after);
            }
            (Some(before), Some(after)) => {
                text.line(depth, '~', format!("{label}: {} → {}", shown(before), shown(after)));
            }
            (Some(before), None) => text.line(depth, '-', format!("{label}: {}", shown(before))),
            (None, Some(after)) => text.line(depth, '+', format!("{label}: {}", shown(after))),
            (None, None) => {}
        }
    }
}

/// The lines between the first and the last difference: removed ones, then added ones.
fn changed_lines(text: &mut Text, depth: usize, before: &str, after: &str) {
    let (mut before, mut after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    (before, after) = (before.split_off(same), after.split_off(same));
    while before.last().is_some_and(|last| after.last() == Some(last)) {
        before.pop();
        after.pop();
    }
    let removed = before.into_iter().map(|line| ('-', line));
    let lines: Vec<(char, &str)> = removed.chain(after.into_iter().map(|line| ('+', line))).collect();
    for (sign, line) in lines.iter().take(MAX_LINES) {
        text.line(depth, *sign, line);
    }
    if lines.len() > MAX_LINES {
        text.line(depth, '~', format!("… and {}", counted(lines.len() - MAX_LINES, "more line")));
    }
}

/// A value in one line, truncated if it is long.
fn shown(field: &str, value: &Value) -> String {
    let text = fields::describe(field, value).unwrap_or_else(|| value.to_string());
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Which runs keep their version.
fn kept(unfinished: &Unfinished) -> Option<String> {
    let total: usize = unfinished.versions.values().sum();
    let runs =
        format!("{}{}", if unfinished.more { "at least " } else { "" }, counted(total, "unfinished run"));
    let keep = if total == 1 { "keeps" } else { "keep" };
    let mut versions = unfinished.versions.iter();
    match (versions.next()?, versions.next()) {
        ((version, _), None) => Some(format!("{runs} {keep} v{version}")),
        _ => {
            let each = unfinished.versions.iter().map(|(version, count)| format!("{count} on v{version}"));
            Some(format!("{runs} {keep} their version: {}", each.collect::<Vec<_>>().join(", ")))
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Lines with a sign each, in the sign's colour.
struct Text {
    palette: Palette,
    lines: Vec<String>,
}

impl Text {
    fn line(&mut self, depth: usize, sign: char, text: impl std::fmt::Display) {
        let colour = match sign {
            '+' => Colour::Good,
            '-' => Colour::Bad,
            '~' => Colour::Busy,
            _ => Colour::Quiet,
        };
        let line = self.palette.paint(colour, format!("{sign} {text}"));
        self.lines.push(format!("{}{line}", "    ".repeat(depth)));
    }
}
