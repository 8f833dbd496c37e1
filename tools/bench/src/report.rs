//! The report of all measurements, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::database::Statement;
use crate::machine::Machine;
use ebb::output;

/// The goal of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(goal) => value >= goal,
            Self::AtMost(goal) => value <= goal,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(goal) => write!(f, "≥ {}", shown(*goal)),
            Self::AtMost(goal) => write!(f, "≤ {}", shown(*goal)),
        }
    }
}

/// One measured number, with its unit and goal.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<Goal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
    /// A rate divided by the commits per second of this machine, to compare figures between machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_machine_commit: Option<f64>,
}

impl Figure {
    pub(crate) fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value: rounded(value), unit, goal: None, met: None, per_machine_commit: None }
    }

    fn with(self, goal: Goal) -> Self {
        Self { goal: Some(goal), met: Some(goal.is_met_by(self.value)), ..self }
    }

    pub(crate) fn at_least(self, goal: f64) -> Self {
        self.with(Goal::AtLeast(goal))
    }

    pub(crate) fn at_most(self, goal: f64) -> Self {
        self.with(Goal::AtMost(goal))
    }
}

/// The result of one scenario.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// A description of the scenario.
    pub(crate) what: String,
    pub(crate) figures: Vec<Figure>,
    /// Why there are no figures, if this machine lacks something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_measured: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) statements: Vec<StatementCost>,
}

impl Outcome {
    pub(crate) fn new(name: &'static str, what: impl Into<String>, figures: Vec<Figure>) -> Self {
        let what = what.into();
        Self { name, what, figures, not_measured: None, notes: Vec::new(), statements: Vec::new() }
    }

    /// A scenario that cannot be measured here. It misses its goals.
    pub(crate) fn not_measured(name: &'static str, what: impl Into<String>, why: String) -> Self {
        Self { not_measured: Some(why), ..Self::new(name, what, Vec::new()) }
    }

    fn is_met(&self) -> bool {
        self.not_measured.is_none() && self.figures.iter().all(|figure| figure.met != Some(false))
    }

    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The cost of a statement per step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct StatementCost {
    pub(crate) statement: String,
    pub(crate) calls_per_step: f64,
    pub(crate) mean_ms: f64,
    pub(crate) rows_per_call: f64,
    pub(crate) ms_per_step: f64,
}

impl StatementCost {
    pub(crate) fn of(statement: &Statement, steps: f64) -> Self {
        let calls = statement.calls as f64;
        Self {
            statement: in_one_line(&statement.query),
            calls_per_step: rounded(calls / steps),
            mean_ms: rounded(statement.total_ms / calls),
            rows_per_call: rounded(statement.rows as f64 / calls),
            ms_per_step: rounded(statement.total_ms / steps),
        }
    }
}

/// The query in one line, without comments.
fn in_one_line(query: &str) -> String {
    let lines = query.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The measurements of all scenarios.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Report {
    version: &'static str,
    build: &'static str,
    quick: bool,
    machine: Machine,
    scenarios: Vec<Outcome>,
}

impl Report {
    pub(crate) fn new(quick: bool, machine: Machine, mut scenarios: Vec<Outcome>) -> Self {
        let figures = scenarios.iter_mut().flat_map(|outcome| &mut outcome.figures);
        for figure in figures.filter(|figure| figure.unit == "/s") {
            figure.per_machine_commit = Some(rounded(figure.value / machine.commits_per_second));
        }
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self { version: env!("CARGO_PKG_VERSION"), build, quick, machine, scenarios }
    }

    /// Whether everything is measured, and every goal is met. Smaller sizes are less exact, so they are not judged.
    pub(crate) fn is_met(&self) -> bool {
        self.quick || self.scenarios.iter().all(Outcome::is_met)
    }

    fn heading(&self) -> String {
        let Machine { cores, postgres, database, connections, .. } = &self.machine;
        let syncs = self.machine.fdatasync_per_second.map(|it| format!(", {} fdatasync/s", shown(it)));
        format!(
            "Ebbflow {} ({} build) on {cores} cores, PostgreSQL {postgres} ({database}).\n\
             The machine: {} commits/s over {connections} connections, {} over one{}; {} rows/s in hundreds, {} in thousands.\n",
            self.version,
            self.build,
            shown(self.machine.commits_per_second),
            shown(self.machine.commits_alone_per_second),
            syncs.unwrap_or_default(),
            shown(self.machine.rows_in_hundreds_per_second),
            shown(self.machine.rows_in_thousands_per_second),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        let head = ["SCENARIO", "FIGURE", "MEASURED", "", "GOAL", "MET", "PER COMMIT"];
        write!(f, "{}", output::table(head, self.scenarios.iter().flat_map(lines)))?;
        for outcome in &self.scenarios {
            if let Some(why) = &outcome.not_measured {
                write!(f, "\n{}: NOT MEASURED, {why}", outcome.name)?;
            }
            for note in &outcome.notes {
                write!(f, "\n{}: {note}", outcome.name)?;
            }
            if outcome.name == "statements" {
                write!(f, "\n\n{}", markdown(&outcome.statements))?;
            }
            if outcome.name == "crowd" {
                write!(f, "\n\n{}", figures_as_markdown(outcome))?;
            }
        }
        Ok(())
    }
}

/// The figures of a scenario, one per line; the first line has its name.
fn lines(outcome: &Outcome) -> Vec<Vec<String>> {
    let line = |(number, figure): (usize, &Figure)| {
        let name = if number == 0 { outcome.name } else { "" };
        let goal = figure.goal.map(|goal| goal.to_string()).unwrap_or_default();
        let met = figure.met.map_or("", |met| if met { "yes" } else { "NO" });
        let ratio = figure.per_machine_commit.map(|ratio| ratio.to_string()).unwrap_or_default();
        [name, figure.name, &shown(figure.value), figure.unit, &goal, met, &ratio].map(String::from).to_vec()
    };
    outcome.figures.iter().enumerate().map(line).collect()
}

/// The figures as a table for a document.
fn figures_as_markdown(outcome: &Outcome) -> String {
    let head = "| scenario | figure | measured | goal | met |\n|---|---|---:|---:|---|";
    let row = |line: Vec<String>| match line.as_slice() {
        [name, figure, value, unit, goal, met, ..] => {
            let space = if unit.is_empty() || unit.starts_with('/') { "" } else { " " };
            format!("| {name} | {figure} | {value}{space}{unit} | {goal} | {met} |")
        }
        _ => String::new(),
    };
    std::iter::once(head.to_owned()).chain(lines(outcome).into_iter().map(row)).collect::<Vec<_>>().join("\n")
}

/// The statements as a table for a document.
fn markdown(statements: &[StatementCost]) -> String {
    let head =
        "| calls per step | mean ms | ms per step | rows per call | statement |\n|---:|---:|---:|---:|---|";
    let row = |it: &StatementCost| {
        let text: String = it.statement.replace('|', "\\|").chars().take(160).collect();
        let numbers =
            [it.calls_per_step, it.mean_ms, it.ms_per_step, it.rows_per_call].map(|it| it.to_string());
        format!("| {} | `{text}` |", numbers.join(" | "))
    };
    std::iter::once(head.to_owned()).chain(statements.iter().map(row)).collect::<Vec<_>>().join("\n")
}

/// Rounds to three or four significant digits.
pub(crate) fn rounded(value: f64) -> f64 {
    let places = match value.abs() {
        v if v >= 100.0 => 1.0,
        v if v >= 10.0 => 10.0,
        v if v >= 1.0 => 100.0,
        _ => 10_000.0,
    };
    (value * places).round() / places
}

/// With a comma between groups of three digits.
fn shown(value: f64) -> String {
    let whole = value.trunc().abs() as u64;
    if whole < 1_000 {
        return value.to_string();
    }
    let digits = whole.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests;
