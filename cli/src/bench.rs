//! `ebb bench`: how fast all of Ebbflow is on this machine, beside what the machine itself can do.
//!
//! Each scenario has a fresh database and an `ebb dev` of its own on it, and drives it by the API. A scenario is a
//! short function over a `World` that gives an `Outcome`.

mod chain;
mod diamond;
mod fairness;
mod history;
mod instances;
mod latency;
mod load;
mod machine;
mod memory;
mod pages;
mod percentiles;
mod processes;
mod register;
mod report;
mod start;
mod timers;
mod trigger;
mod usage;
mod wide;
mod workflows;
mod world;

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

use crate::args::Shared;
use crate::output;
use machine::Machine;
use report::{Outcome, Report};
use world::Bench;

/// What `ebb bench` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArgs {
    /// What to measure [default: everything]
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<Scenario>,
    /// Smaller sizes: everything within a minute, and less exact
    #[arg(long)]
    pub quick: bool,
    /// A server to measure on, instead of an embedded one; a database is made there, and dropped
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,
}

/// Something to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scenario {
    /// Steps in a second, in many chains at once
    Chain,
    /// From one step to the next, when nothing else is under way
    Latency,
    /// How long it takes until a run is accepted
    Trigger,
    /// Branches that meet, many at once
    Diamond,
    /// A fan-out of 10,000, against fan-outs of 100
    Wide,
    /// One task of one tenant behind 10,000 of another
    Fairness,
    /// 100,000 timers that are due at once, and an idle minute
    Timers,
    /// One and two processes of each function
    Instances,
    /// 500 workflows in one request
    Register,
    /// From the start of a function until it is ready
    Start,
    /// What this process holds under load
    Memory,
    /// 1,000,000 runs that have ended, against none
    History,
    /// Each page of the console, with 1,000,000 runs
    Pages,
    /// The statements that a step costs, as a table
    Statements,
}

impl Scenario {
    /// What is measured where nothing is named. Memory comes first, since a process keeps what others needed; the last
    /// ones leave the machine's caches in the worst state.
    const ALL: [Self; 13] = [
        Self::Memory,
        Self::Chain,
        Self::Latency,
        Self::Trigger,
        Self::Diamond,
        Self::Wide,
        Self::Fairness,
        Self::Timers,
        Self::Instances,
        Self::Register,
        Self::Start,
        Self::History,
        Self::Pages,
    ];

    async fn measure(self, bench: &Bench) -> Result<Outcome> {
        match self {
            Self::Chain => chain::run(bench).await,
            Self::Latency => latency::run(bench).await,
            Self::Trigger => trigger::run(bench).await,
            Self::Diamond => diamond::run(bench).await,
            Self::Wide => wide::run(bench).await,
            Self::Fairness => fairness::run(bench).await,
            Self::Timers => timers::run(bench).await,
            Self::Instances => instances::run(bench).await,
            Self::Register => register::run(bench).await,
            Self::Start => start::run(bench).await,
            Self::Memory => memory::run(bench).await,
            Self::History => history::run(bench).await,
            Self::Pages => pages::run(bench).await,
            Self::Statements => chain::statements(bench).await,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Measures and prints.
pub async fn run(shared: &Shared, args: &BenchArgs) -> Result<ExitCode> {
    let bench = Bench::open(args).await?;
    let report = measure(&bench, args).await;
    bench.close().await;
    let report = report?;
    match shared.json {
        true => output::json(&report)?,
        false => output::line(report)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(bench: &Bench, args: &BenchArgs) -> Result<Report> {
    let wanted = if args.scenarios.is_empty() { &Scenario::ALL } else { args.scenarios.as_slice() };
    bench.say("measuring the machine");
    let machine = Machine::measure(bench).await?;
    let mut scenarios = Vec::new();
    for scenario in wanted {
        bench.say(&format!("measuring {}", scenario.name()));
        scenarios.push(scenario.measure(bench).await?);
    }
    Ok(Report::new(args.quick, machine, scenarios))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    #[test]
    fn scenarios_are_named_by_one_word_each() {
        let line = Line::try_parse_from(["bench", "chain", "--quick", "history"]).unwrap();
        assert_eq!(line.bench.scenarios, [Scenario::Chain, Scenario::History]);
        assert!(line.bench.quick);
        let refusal = Line::try_parse_from(["bench", "chian"]).err().unwrap().to_string();
        assert!(refusal.contains("'chain'"), "{refusal}");
    }

    #[test]
    fn everything_is_measured_where_nothing_is_named() {
        let left_out = |scenario: &&Scenario| !Scenario::ALL.contains(scenario);
        let left_out: Vec<&Scenario> = Scenario::value_variants().iter().filter(left_out).collect();
        // It measures what `chain` does and prints more of it.
        assert_eq!(left_out, [&Scenario::Statements]);
    }
}
