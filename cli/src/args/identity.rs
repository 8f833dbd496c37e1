//! Who may do what: tokens for programs, grants for people, and signing in.

use clap::{Args, Subcommand};
use uuid::Uuid;

/// What to do about service tokens.
#[derive(Subcommand, Clone, Debug)]
pub enum Tokens {
    /// Make a token for a program; it is shown once
    #[command(
        after_help = "Examples:\n  ebb tokens create ci --role author\n  ebb tokens create shop --role partner --workflows 'orders-*' --days 30\n\nOnly the token stands on standard output."
    )]
    Create(NewToken),
    /// List tokens, without the tokens themselves
    List,
    /// Revoke a token: within seconds nobody can use it
    Revoke {
        /// Its id, as `ebb tokens list` shows it
        id: Uuid,
    },
}

/// A token to be made.
#[derive(Args, Clone, Debug)]
pub struct NewToken {
    /// What it is for
    pub name: String,
    /// What its bearer may do
    #[command(flatten)]
    pub scope: Scope,
    /// For how many days it is good
    #[arg(long, default_value_t = 90, value_name = "N")]
    pub days: i64,
}

/// What somebody may do, and where.
#[derive(Args, Clone, Debug)]
pub struct Scope {
    /// viewer, operator, author, admin, worker or partner
    #[arg(long)]
    pub role: String,
    /// In which tenant; * for all of them [default: the one that is used]
    #[arg(long = "in", value_name = "TENANT")]
    pub reach: Option<String>,
    /// For which workflows; * stands for any characters [default: all]
    #[arg(long, value_name = "PATTERN")]
    pub workflows: Option<String>,
}

/// What to do about grants.
#[derive(Subcommand, Clone, Debug)]
pub enum Grants {
    /// Give somebody a role
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
    /// List the roles that were given; those of the configuration are not among them
    List,
    /// Take a role back
    Remove {
        /// Its id, as `ebb grants list` shows it
        id: Uuid,
    },
}

/// How to sign in.
#[derive(Args, Clone, Debug)]
pub struct Login {
    /// Read a token from standard input instead of asking a browser for one
    #[arg(long)]
    pub with_token: bool,
}
