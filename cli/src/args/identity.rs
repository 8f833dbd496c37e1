//! Arguments about access: service tokens, grants and signing in.

use clap::{Args, Subcommand};
use uuid::Uuid;

/// What to do about service tokens.
#[derive(Subcommand, Clone, Debug)]
pub enum Tokens {
    /// Create a service token; it is shown once
    #[command(
        after_help = "Examples:\n  ebb tokens create ci --role author\n  ebb tokens create shop --role partner --workflows 'orders-*' --days 30\n\nOnly the token is printed to standard output."
    )]
    Create(NewToken),
    /// List tokens, without their secrets
    List,
    /// Revoke a token; it takes effect within seconds
    Revoke {
        /// Its id, as `ebb tokens list` shows it
        id: Uuid,
    },
}

/// A token to create.
#[derive(Args, Clone, Debug)]
pub struct NewToken {
    /// What it is for
    pub name: String,
    /// What its bearer may do
    #[command(flatten)]
    pub scope: Scope,
    /// How many days it is valid
    #[arg(long, default_value_t = 90, value_name = "N")]
    pub days: i64,
}

/// A role, and where it applies.
#[derive(Args, Clone, Debug)]
pub struct Scope {
    /// viewer, operator, author, admin, worker or partner
    #[arg(long)]
    pub role: String,
    /// The tenant, or * for all [default: the current tenant]
    #[arg(long = "in", value_name = "TENANT")]
    pub reach: Option<String>,
    /// The workflows; * matches any text [default: all]
    #[arg(long, value_name = "PATTERN")]
    pub workflows: Option<String>,
}

/// What to do about grants.
#[derive(Subcommand, Clone, Debug)]
pub enum Grants {
    /// Grant a role
    #[command(
        after_help = "Examples:\n  ebb grants add ada@example.com --role author\n  ebb grants add @example.com --role viewer\n  ebb grants add group:night-shift --role operator --workflows 'etl-*'"
    )]
    Add {
        /// An address, a @domain or a group:NAME
        who: String,
        /// What they may do
        #[command(flatten)]
        scope: Scope,
    },
    /// List grants, except those of the configuration
    List,
    /// Remove a grant
    Remove {
        /// Its id, as `ebb grants list` shows it
        id: Uuid,
    },
}

/// How to sign in.
#[derive(Args, Clone, Debug)]
pub struct Login {
    /// Read a token from standard input instead of using a browser
    #[arg(long)]
    pub with_token: bool,
}
