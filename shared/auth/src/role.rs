//! Roles, and the permissions that they have.

use std::fmt;
use std::str::FromStr;

/// A permission that endpoints require.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Permission {
    /// See the state of runs, without definitions, logs and task outputs.
    Follow,
    /// Start runs and send them signals.
    Start,
    /// See everything about a workflow and its runs.
    Read,
    /// Control runs, schedules, triggers and backfills, and answer approvals.
    Operate,
    /// Create, change and delete workflows.
    Author,
    /// Manage grants, tokens, tenants and limits.
    Administer,
    /// Run attempts as a remote worker.
    Work,
}

impl Permission {
    /// All permissions, in the order of their declaration.
    pub const ALL: [Self; 7] =
        [Self::Follow, Self::Start, Self::Read, Self::Operate, Self::Author, Self::Administer, Self::Work];

    /// The roles that have this permission.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| role.has(self))
    }
}

/// A named set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Sees everything, changes nothing.
    Viewer,
    /// Also starts and controls runs.
    Operator,
    /// Also registers, changes and archives workflows.
    Author,
    /// Has every permission in the tenant.
    Admin,
    /// A remote worker, which only runs attempts.
    Worker,
    /// An external partner, who starts runs and sees their state.
    Partner,
}

impl Role {
    /// All roles, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Viewer, Self::Operator, Self::Author, Self::Admin, Self::Worker, Self::Partner];

    /// The role's name in grants.
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

    /// Whether the role has a permission. This table is the only place that says so.
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
