//! `ebb fairness simulate`: what each of several tenants would get, by the decision that the stores make.

mod play;
mod tenant;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::args::Shared;
use crate::output;
use play::{Played, play};
use tenant::Tenant;

/// What to look at.
#[derive(Subcommand, Clone, Debug)]
pub enum Fairness {
    /// Play through who would be given a place when
    #[command(
        after_help = "Examples:\n  ebb fairness simulate --party a:tasks=10000 --party b:tasks=1,at=500\n  ebb fairness simulate --party a:weight=3,tasks=300 --party b:tasks=300 --places 8\n\nEach task takes as long as any other. Time and waits are counted in releases: places that were given."
    )]
    Simulate(Simulate),
}

/// Who comes when with how much.
#[derive(Args, Clone, Debug)]
pub struct Simulate {
    /// A tenant: its name, and any of weight=N (1), tasks=N (1), at=N (0: after how many releases its
    /// tasks come) and every=N (0: how many releases lie between two of them)
    #[arg(long = "party", value_name = "NAME[:KEY=N,…]", required = true)]
    tenants: Vec<Tenant>,
    /// How many tasks may be under way at the same time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    places: u32,
}

/// What a tenant got.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Share {
    tenant: String,
    weight: u32,
    tasks: u32,
    /// In parts of a hundred, of the places that were given while several tenants waited.
    entitled: f64,
    received: f64,
    /// How many places were given while a task waited.
    first_wait: u32,
    mean_wait: f64,
    longest_wait: u32,
}

/// What everyone got.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Shares {
    places: u32,
    releases: u32,
    /// Releases while several tenants waited: only these can be fair or not.
    contended: u32,
    tenants: Vec<Share>,
}

/// Plays it through and shows what each tenant would get.
pub fn simulate(shared: &Shared, args: &Simulate) -> Result<ExitCode> {
    let mut names: Vec<&str> = args.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == args.tenants.len(), "two tenants have the same name: name each once");
    let shares = Shares::of(args);
    match shared.json {
        true => output::json(&shares)?,
        false => output::line(shares.table())?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Shares {
    fn of(args: &Simulate) -> Self {
        let Played { releases, contended, tenants } = play(&args.tenants, args.places);
        let percent = |part: f64| (part * 1_000.0 / f64::from(contended.max(1))).round() / 10.0;
        let share = |(tenant, got): (&Tenant, play::Got)| Share {
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
        Self { places: args.places, releases, contended, tenants }
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
            "{}\n\n{} releases over {} places, {} of them while several tenants waited: shares are of these.\n\
             Waits are counted in releases.",
            output::table(&rows, |_, _, cell| cell),
            self.releases,
            self.places,
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
