//! The output of the commands: text, coloured on a terminal, or JSON.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use api::views::ProgressView;
use chrono::TimeDelta;
use model::{Instant, RunState, TaskState};
use serde::Serialize;

use crate::args::Shared;

/// Prints one line. A closed pipe is an error, not a panic.
pub fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Prints a value as indented JSON.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(serde_json::to_string_pretty(value).expect("keys are strings"))
}

/// Prints JSON in one line, for streams.
pub fn json_line(value: &impl Serialize) -> io::Result<()> {
    line(serde_json::to_string(value).expect("keys are strings"))
}

/// Prints a value: as JSON with `--json`, else as text.
pub fn print<T: Display>(
    shared: &Shared,
    value: &impl Serialize,
    text: impl FnOnce() -> T,
) -> io::Result<()> {
    if shared.json { json(value) } else { line(text()) }
}

/// Prints a list: as JSON with `--json`, else as a table, or `none` if it is empty.
pub fn print_list<T>(
    shared: &Shared,
    value: &impl Serialize,
    items: &[T],
    none: &str,
    table: impl FnOnce(&[T]) -> String,
) -> io::Result<()> {
    print(shared, value, || if items.is_empty() { none.to_owned() } else { table(items) })
}

/// How far an attempt has come: `42 % load: page 3, rows = 100`.
pub fn reported(progress: &ProgressView) -> String {
    let percent = progress.percent().map(|percent| format!("{percent} %"));
    let words = [progress.phase.clone(), progress.message.clone()];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
    let done = percent.into_iter().chain(Some(words).filter(|words| !words.is_empty()));
    let done = Some(done.collect::<Vec<_>>().join(" ")).filter(|done| !done.is_empty());
    let metrics = progress.metrics.iter().map(|(name, metric)| format!("{name} = {}", metric.value));
    done.into_iter().chain(metrics).collect::<Vec<_>>().join(", ")
}

/// A colour with a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// The colour of success.
    Good,
    /// The colour of failure.
    Bad,
    /// The colour of work in progress.
    Busy,
    /// The colour of what matters less.
    Quiet,
}

/// Whether output is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Palette {
    /// True for a terminal.
    pub on: bool,
}

impl Palette {
    /// The palette of standard output: coloured on a terminal, unless `NO_COLOR` is set.
    pub fn of_stdout() -> Self {
        let disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { on: io::stdout().is_terminal() && !disabled }
    }

    /// The text in a colour.
    pub fn paint(self, colour: Colour, text: impl Display) -> String {
        let code = match colour {
            Colour::Good => 32,
            Colour::Bad => 31,
            Colour::Busy => 36,
            Colour::Quiet => 2,
        };
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// The sign and the colour of a task's state.
pub fn task_sign(state: TaskState) -> (&'static str, Colour) {
    match state {
        TaskState::Pending | TaskState::Queued => ("○", Colour::Quiet),
        TaskState::Dispatched => ("▷", Colour::Busy),
        TaskState::Running => ("▶", Colour::Busy),
        TaskState::Sleeping => ("☾", Colour::Quiet),
        TaskState::UpForRetry => ("↻", Colour::Bad),
        TaskState::Succeeded => ("✓", Colour::Good),
        TaskState::Failed => ("✗", Colour::Bad),
        TaskState::UpstreamFailed => ("↯", Colour::Bad),
        TaskState::Skipped => ("⤼", Colour::Quiet),
        TaskState::Cancelled => ("⊘", Colour::Quiet),
        TaskState::Removed => ("-", Colour::Quiet),
    }
}

/// The colour of a run's state.
pub fn run_colour(state: RunState) -> Colour {
    match state {
        RunState::Succeeded => Colour::Good,
        RunState::Failed | RunState::Stalled => Colour::Bad,
        RunState::Running => Colour::Busy,
        RunState::Queued | RunState::Paused | RunState::Cancelled => Colour::Quiet,
    }
}

/// A table with a heading.
pub fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    painted_table(head, rows, |_, _, cell| cell)
}

/// A table with a heading and coloured cells: `paint` gets the row, the column and the text of each cell.
pub fn painted_table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = Vec<String>>,
    paint: impl Fn(usize, usize, String) -> String,
) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(head.map(String::from).to_vec()).chain(rows).collect();
    columns(&rows, |row, column, cell| match row.checked_sub(1) {
        Some(row) => paint(row, column, cell),
        None => cell,
    })
}

/// Rows in columns, each as wide as its widest cell. Cells are coloured afterwards, since colours have no width.
pub fn columns(rows: &[Vec<String>], paint: impl Fn(usize, usize, String) -> String) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let write = |(number, row): (usize, &Vec<String>)| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let padding = if column + 1 < row.len() { widths[column] - cell.chars().count() } else { 0 };
            paint(number, column, cell.clone()) + &" ".repeat(padding)
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().enumerate().map(write).collect::<Vec<_>>().join("\n")
}

/// An instant, in UTC.
pub fn time(instant: Instant) -> String {
    instant.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// How long something took; empty if it has not ended.
pub fn took(from: Option<Instant>, to: Option<Instant>) -> String {
    from.zip(to).map(|(from, to)| span(to - from)).unwrap_or_default()
}

/// A duration, rounded for people.
pub fn span(span: TimeDelta) -> String {
    let milliseconds = span.num_milliseconds().max(0);
    match milliseconds / 1_000 {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{:.1} s", milliseconds as f64 / 1_000.0),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The first line of a message.
pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell_and_lines_have_no_trailing_spaces() {
        let rows = [vec!["a".into(), "b".into(), String::new()], vec!["long".into(), "c".into(), "d".into()]];
        assert_eq!(columns(&rows, |_, _, cell| cell), "a     b\nlong  c  d");
    }

    #[test]
    fn output_is_coloured_only_on_a_terminal() {
        assert_eq!(Palette { on: false }.paint(Colour::Bad, "failed"), "failed");
        assert_eq!(Palette { on: true }.paint(Colour::Bad, "failed"), "\x1b[31mfailed\x1b[0m");
    }
}
