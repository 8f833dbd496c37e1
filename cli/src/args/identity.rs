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
        /// Id of the token, as `ebb tokens list` shows it
        id: Uuid,
    },
}

/// A token to create.
#[derive(Args, Clone, Debug)]
pub struct NewToken {
    /// Purpose of the token, in a few words
    pub name: String,
    /// What its bearer may do
    #[command(flatten)]
    pub scope: Scope,
    /// Number of days until it expires
    #[arg(long, default_value_t = 90, value_name = "N")]
    pub days: i64,
}

/// A role, and where it applies.
#[derive(Args, Clone, Debug)]
pub struct Scope {
    /// Role: viewer, operator, author, admin, worker or partner
    #[arg(long)]
    pub role: String,
    /// Tenant where the role applies, or * for all [default: the current tenant]
    #[arg(long = "in", value_name = "TENANT")]
    pub reach: Option<String>,
    /// Workflows where the role applies; * matches any text [default: all]
    #[arg(long, value_name = "PATTERN")]
    pub workflows: Option<String>,
}

/// What to do about grants.
#[derive(Subcommand, Clone, Debug)]
pub enum Grants {
    /// Grant a role to an account, a domain or a group
    #[command(
        after_help = "Examples:\n  ebb grants add ada@example.com --role author\n  ebb grants add @example.com --role viewer\n  ebb grants add group:night-shift --role operator --workflows 'etl-*'"
    )]
    Add {
        /// Email address, @domain or group:NAME
        who: String,
        /// What they may do
        #[command(flatten)]
        scope: Scope,
    },
    /// List grants, except those of the configuration
    List,
    /// Remove a grant; it takes effect within seconds
    Remove {
        /// Id of the grant, as `ebb grants list` shows it
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
