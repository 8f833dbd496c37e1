//! What somebody may be, and what that allows.

use std::fmt;
use std::str::FromStr;

/// What somebody may do, as endpoints ask for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Permission {
    /// See how runs fare: no definition, no log, no output of a task.
    Follow,
    /// Start runs and send them signals.
    Start,
    /// See everything of a workflow and its runs.
    Read,
    /// Steer runs, schedules, triggers and backfills, and answer what tasks ask.
    Operate,
    /// Say what workflows there are.
    Author,
    /// Say who may do what, and how much.
    Administer,
    /// Carry out attempts from outside.
    Work,
}

impl Permission {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Follow, Self::Start, Self::Read, Self::Operate, Self::Author, Self::Administer, Self::Work];

    /// The roles that have it.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| role.has(self))
    }
}

/// What somebody is, in a tenant and perhaps for some of its workflows only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Looks and touches nothing.
    Viewer,
    /// Keeps things running.
    Operator,
    /// Writes workflows, and keeps them running.
    Author,
    /// May do everything.
    Admin,
    /// A program that carries out attempts.
    Worker,
    /// Somebody from outside who hands in work and asks what became of it.
    Partner,
}

impl Role {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Viewer, Self::Operator, Self::Author, Self::Admin, Self::Worker, Self::Partner];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Admin => "admin",
            Self::Worker => "worker",
            Self::Partner => "partner",
        }
    }

    /// Whether it allows that. The one place that says so.
    pub fn has(self, permission: Permission) -> bool {
        use Permission::{Author, Follow, Operate, Read, Start, Work};
        match self {
            Self::Viewer => matches!(permission, Follow | Read),
            Self::Operator => matches!(permission, Follow | Start | Read | Operate),
            Self::Author => matches!(permission, Follow | Start | Read | Operate | Author),
            Self::Admin => true,
            Self::Worker => matches!(permission, Work),
            Self::Partner => matches!(permission, Follow | Start),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| format!("unknown role `{text}`; expected one of {}", known()))
    }
}
