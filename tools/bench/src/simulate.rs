//! Simulates which tenant gets a slot when, by the decision that the stores make.

mod run;
mod tenant;

use anyhow::{Result, ensure};
use clap::Args;
use ebb::output;
use serde::Serialize;

use run::{Simulated, run};
use tenant::Tenant;

#[derive(Args)]
pub(crate) struct Simulate {
    /// A tenant: its name, and any of weight=N (1), tasks=N (1), at=N (0: the number of releases before its first
    /// task comes) and every=N (0: the number of releases between two of its tasks)
    #[arg(long = "tenant", value_name = "NAME[:KEY=N,…]", required = true)]
    tenants: Vec<Tenant>,
    /// The number of tasks that may run at the same time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,
}

/// The share of a tenant.
#[derive(Debug, Serialize)]
struct Share {
    tenant: String,
    weight: u32,
    tasks: u32,
    /// As a percentage of the slots that were granted while several tenants waited.
    entitled: f64,
    received: f64,
    /// As the number of slots that were granted during the wait.
    first_wait: u32,
    mean_wait: f64,
    longest_wait: u32,
}

/// The shares of all tenants.
#[derive(Debug, Serialize)]
pub(crate) struct Shares {
    slots: u32,
    releases: u32,
    /// Releases while several tenants waited: only these can be fair or unfair.
    contended: u32,
    tenants: Vec<Share>,
}

/// Simulates the shares of the tenants.
pub(crate) fn shares(args: &Simulate) -> Result<Shares> {
    let mut names: Vec<&str> = args.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == args.tenants.len(), "two tenants have the same name");
    let Simulated { releases, contended, tenants } = run(&args.tenants, args.slots);
    let percent = |part: f64| tenths(part * 100.0 / f64::from(contended.max(1)));
    let share = |(tenant, grants): (&Tenant, run::Grants)| Share {
        tenant: tenant.name.clone(),
        weight: tenant.weight,
        tasks: tenant.tasks,
        entitled: percent(grants.entitled),
        received: percent(f64::from(grants.received)),
        first_wait: grants.waits.first().copied().unwrap_or_default(),
        mean_wait: tenths(
            grants.waits.iter().copied().map(f64::from).sum::<f64>() / grants.waits.len().max(1) as f64,
        ),
        longest_wait: grants.waits.iter().copied().max().unwrap_or_default(),
    };
    let tenants = args.tenants.iter().zip(tenants).map(share).collect();
    Ok(Shares { slots: args.slots, releases, contended, tenants })
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

impl Shares {
    pub(crate) fn table(&self) -> String {
        let head = ["TENANT", "WEIGHT", "TASKS", "ENTITLED", "RECEIVED", "FIRST WAIT", "MEAN", "LONGEST"];
        let rows = self.tenants.iter().map(|share| {
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
        });
        format!(
            "{}\n\n{} releases over {} slots, {} of them while several tenants waited: shares are of these.\n\
             Waits are counted in releases.",
            output::table(head, rows),
            self.releases,
            self.slots,
            self.contended,
        )
    }
}

#[cfg(test)]
mod tests;
