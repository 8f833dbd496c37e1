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
