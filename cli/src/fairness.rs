//! `ebb fairness simulate`: how tenants would share slots, by the decision that the engine makes.

mod simulation;
mod tenant;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::args::Shared;
use crate::output;
use simulation::{Simulated, simulate_all};
use tenant::Tenant;

/// What to simulate.
#[derive(Subcommand, Clone, Debug)]
pub enum Fairness {
    /// Simulate which tenant gets a slot when
    #[command(
        after_help = "Examples:\n  ebb fairness simulate --group a:tasks=10000 --group b:tasks=1,at=500\n  ebb fairness simulate --group a:weight=3,tasks=300 --group b:tasks=300 --slots 8\n\nAll tasks take equally long. Time is counted in releases: slots that were granted."
    )]
    Simulate(Simulate),
}

/// The tenants and their tasks.
#[derive(Args, Clone, Debug)]
pub struct Simulate {
    /// A tenant: its name, and any of weight=N (1), tasks=N (1), at=N (0: the release at which its tasks arrive) and every=N
    /// (0: releases between two tasks)
    #[arg(long = "group", value_name = "NAME[:KEY=N,…]", required = true)]
    tenants: Vec<Tenant>,
    /// The number of slots
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,
}

/// The share of a tenant.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Share {
    tenant: String,
    weight: u32,
    tasks: u32,
    /// Percent of the slots that were granted while several tenants waited.
    entitled: f64,
    received: f64,
    /// How many slots were granted while a task waited.
    first_wait: u32,
    mean_wait: f64,
    longest_wait: u32,
}

/// The shares of all tenants.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Shares {
    slots: u32,
    releases: u32,
    /// Releases while several tenants waited: only these can be unfair.
    contended: u32,
    tenants: Vec<Share>,
}

/// Simulates and prints what each tenant would get.
pub fn simulate(shared: &Shared, args: &Simulate) -> Result<ExitCode> {
    let mut names: Vec<&str> = args.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == args.tenants.len(), "two tenants have the same name");
    let shares = Shares::of(args);
    match shared.json {
        true => output::json(&shares)?,
        false => output::line(shares.table())?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Shares {
    fn of(args: &Simulate) -> Self {
        let Simulated { releases, contended, tenants } = simulate_all(&args.tenants, args.slots);
        let percent = |part: f64| (part * 1_000.0 / f64::from(contended.max(1))).round() / 10.0;
        let share = |(tenant, got): (&Tenant, simulation::Got)| Share {
            tenant: tenant.name.clone(),
            weight: tenant.weight,
            tasks: tenant.tasks,
            entitled: percent(got.entitled),
            received: percent(f64::from(got.received)),
            first_wait: got.waits.first().copied().unwrap_or_default(),
            mean_wait: mean(&got.waits),
            longest_wait: got.waits.iter().copied().max().unwrap_or_default(),
        };
        let tenants = args.tenants.iter().zip(tenants).map(share).collect();
        Self { slots: args.slots, releases, contended, tenants }
    }

    fn table(&self) -> String {
        let head = ["TENANT", "WEIGHT", "TASKS", "ENTITLED", "RECEIVED", "FIRST WAIT", "MEAN", "LONGEST"];
        let row = |share: &Share| {
            vec![
                share.tenant.clone(),
                share.weight.to_string(),
                share.tasks.to_string(),
                format!("{:.1} %", share.entitled),
                format!("{:.1} %", share.received),
                share.first_wait.to_string(),
                share.mean_wait.to_string(),
                share.longest_wait.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> =
            std::iter::once(head.map(String::from).to_vec()).chain(self.tenants.iter().map(row)).collect();
        format!(
            "{}\n\n{} releases over {} slots, {} of them while several tenants waited; shares refer to these.\n\
             Waits are counted in releases.",
            output::table(&rows, |_, _, cell| cell),
            self.releases,
            self.slots,
            self.contended,
        )
    }
}

fn mean(waits: &[u32]) -> f64 {
    let sum: f64 = waits.iter().copied().map(f64::from).sum();
    (sum * 10.0 / waits.len().max(1) as f64).round() / 10.0
}

#[cfg(test)]
mod tests;
