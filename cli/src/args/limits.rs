//! How many tasks shall be under way at the same time.

use clap::{Args, Subcommand};

/// Which limits to show, or what to set.
#[derive(Args, Clone, Debug)]
pub struct Limits {
    /// What to show or change [default: show all]
    #[command(subcommand)]
    pub action: Option<LimitAction>,
}

/// What to show or change about limits.
#[derive(Subcommand, Clone, Debug)]
pub enum LimitAction {
    /// Show who has the places of a limit, and who comes next
    Show {
        /// pool, queue, tenant or workflow
        kind: String,
        /// The name of the pool, queue or workflow; `own` for the tenant
        name: String,
    },
    /// Say how many places a limit has
    Set {
        /// pool, queue or tenant
        kind: String,
        /// The name of the pool or queue; `own` for the tenant
        name: String,
        /// So many, or `none` for no bound
        #[arg(value_parser = places)]
        places: Places,
    },
}

/// A number of places; none for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places(pub Option<u32>);

fn places(text: &str) -> Result<Places, String> {
    match text {
        "none" => Ok(Places(None)),
        _ => text.parse().map(|places| Places(Some(places))).map_err(|_| "write a number, or `none`".into()),
    }
}

/// Which tenants to show, or what to set.
#[derive(Args, Clone, Debug)]
pub struct Tenants {
    /// What to show or change [default: list all that you have to do with]
    #[command(subcommand)]
    pub action: Option<TenantAction>,
}

/// What to show or change about tenants.
#[derive(Subcommand, Clone, Debug)]
pub enum TenantAction {
    /// Show one
    Show {
        /// The tenant
        name: String,
    },
    /// Say what a tenant has coming; a new one comes into being
    Set {
        /// The tenant
        name: String,
        /// How often it comes in each round where tenants wait for places, from 1 to 1000
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        weight: Option<u32>,
        /// How many of its tasks may be under way at the same time, or `none` for no bound
        #[arg(long, value_name = "N", value_parser = places)]
        max_active_tasks: Option<Places>,
    },
}
