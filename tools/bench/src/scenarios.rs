//! What is measured. Each scenario is a short function over a fresh `World` that returns an `Outcome`.

mod crowd;
mod fairness;
mod history;
mod latency;
mod leases;
mod pages;
mod programs;
mod throughput;
mod timers;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::machine::Machine;
use crate::report::{Outcome, Report};
use crate::world::Bench;

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// What to measure [default: everything but `statements` and `crowd`]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// Smaller sizes: everything within a minute, and less exact
    #[arg(long)]
    pub(crate) quick: bool,
    /// A server to measure on instead of an embedded one; a database is created there, and dropped
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Scenario {
    /// Steps per second, in many chains at once
    Chain,
    /// From one step to the next, when nothing else is running
    Latency,
    /// The time until a run is accepted
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
    /// Tasks that workers lease: how soon, how many, and the cost of an idle worker
    Leases,
    /// 500 programs with containment, against as many without
    Containment,
    /// The start of Python with packages, against without
    Python,
    /// 500 workflows in one request
    Register,
    /// From the start of a function until it is ready
    Start,
    /// The memory of this process under load
    Memory,
    /// 1,000,000 runs that have ended, against none
    History,
    /// Each page of the console, with 1,000,000 runs
    Pages,
    /// The statements that a step costs, as a table
    Statements,
    /// 500 listeners, 1,000 slow clients, 10,000 rejected tokens per second and forged cursors, while runs are started
    Crowd,
}

impl Scenario {
    /// What is measured by default. Memory comes first, since a process keeps what earlier scenarios allocated; the
    /// last ones leave the machine's caches in the worst state.
    const ALL: [Self; 16] = [
        Self::Memory,
        Self::Chain,
        Self::Latency,
        Self::Trigger,
        Self::Diamond,
        Self::Wide,
        Self::Fairness,
        Self::Timers,
        Self::Instances,
        Self::Leases,
        Self::Containment,
        Self::Python,
        Self::Register,
        Self::Start,
        Self::History,
        Self::Pages,
    ];

    async fn measure(self, bench: &Bench) -> Result<Outcome> {
        match self {
            Self::Chain => throughput::chain(bench).await,
            Self::Latency => latency::latency(bench).await,
            Self::Trigger => latency::trigger(bench).await,
            Self::Diamond => throughput::diamond(bench).await,
            Self::Wide => throughput::wide(bench).await,
            Self::Fairness => fairness::run(bench).await,
            Self::Timers => timers::run(bench).await,
            Self::Instances => throughput::instances(bench).await,
            Self::Leases => leases::run(bench).await,
            Self::Containment => programs::containment(bench).await,
            Self::Python => programs::python(bench).await,
            Self::Register => latency::register(bench).await,
            Self::Start => latency::start(bench).await,
            Self::Memory => throughput::memory(bench).await,
            Self::History => history::run(bench).await,
            Self::Pages => pages::run(bench).await,
            Self::Statements => throughput::statements(bench).await,
            Self::Crowd => crowd::run(bench).await,
        }
    }
}

#[tokio::main]
pub(crate) async fn measure(args: &BenchArgs) -> Result<Report> {
    let bench = Bench::open(args).await?;
    let report = measure_on(&bench, args).await;
    bench.close().await;
    report
}

async fn measure_on(bench: &Bench, args: &BenchArgs) -> Result<Report> {
    let wanted = if args.scenarios.is_empty() { &Scenario::ALL } else { args.scenarios.as_slice() };
    bench.progress("measuring the machine");
    let machine = Machine::measure(bench).await?;
    let mut outcomes = Vec::new();
    for scenario in wanted {
        bench.progress(&format!("measuring {scenario:?}").to_lowercase());
        outcomes.push(scenario.measure(bench).await?);
    }
    Ok(Report::new(args.quick, machine, outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_by_default() {
        let left_out = |scenario: &&Scenario| !Scenario::ALL.contains(scenario);
        let left_out: Vec<&Scenario> = Scenario::value_variants().iter().filter(left_out).collect();
        // The first measures the same as `chain`, and prints more; the second takes the whole machine for minutes.
        assert_eq!(left_out, [&Scenario::Statements, &Scenario::Crowd]);
    }
}
