//! Arguments about limits, circuit breakers and tenants.

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
    /// Show who holds the slots of a limit, and who is next
    Show {
        /// Kind of limit: pool, queue, tenant or workflow
        kind: String,
        /// Name of the pool, queue or workflow; `own` for the tenant
        name: String,
    },
    /// Set the number of slots of a limit
    Set {
        /// Kind of limit: pool, queue or tenant
        kind: String,
        /// Name of the pool or queue; `own` for the tenant
        name: String,
        /// Number of slots, or `none` for no limit
        #[arg(value_parser = slots)]
        slots: Slots,
    },
}

/// A number of slots; none for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots(pub Option<u32>);

fn slots(text: &str) -> Result<Slots, String> {
    match text {
        "none" => Ok(Slots(None)),
        _ => text.parse().map(|slots| Slots(Some(slots))).map_err(|_| "expected a number or `none`".into()),
    }
}

/// Which circuit breakers to show, or to reset.
#[derive(Args, Clone, Debug)]
pub struct Breakers {
    /// What to do [default: list those that are open or had a failure within a day]
    #[command(subcommand)]
    pub action: Option<BreakerAction>,
}

/// What to do about circuit breakers.
#[derive(Subcommand, Clone, Debug)]
pub enum BreakerAction {
    /// Close a breaker in all processes and forget its failures
    Reset {
        /// Id of the breaker, as listed
        id: i64,
    },
}

/// Which tenants to show, or what to set.
#[derive(Args, Clone, Debug)]
pub struct Tenants {
    /// What to show or change [default: list the tenants in which you have a role]
    #[command(subcommand)]
    pub action: Option<TenantAction>,
}

/// What to show or change about tenants.
#[derive(Subcommand, Clone, Debug)]
pub enum TenantAction {
    /// Show the weight, limits and use of a tenant
    Show {
        /// Name of the tenant
        name: String,
    },
    /// Set a tenant's weight and limits; creates the tenant if it does not exist
    Set {
        /// Name of the tenant
        name: String,
        /// Number of slots in each round while tenants wait for slots, from 1 to 1000
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        weight: Option<u32>,
        /// Maximum number of active tasks, or `none` for no limit
        #[arg(long, value_name = "N", value_parser = slots)]
        max_active_tasks: Option<Slots>,
    },
}
