//! Grants: a role, and where it applies.

use std::fmt;
use std::str::FromStr;

use model::{TenantId, TenantName};

use crate::Role;

/// The tenant of requests and grants that name none.
pub const DEFAULT_TENANT: &str = TenantId::DEFAULT_NAME;

/// The maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 200;

/// A role in one or all tenants, for some or all workflows: `operator:acme/etl-*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Grant {
    /// The role that it gives.
    pub role: Role,
    /// The tenants where it applies.
    pub tenant: TenantScope,
    /// The workflows that it covers in these tenants.
    pub workflows: Pattern,
}

/// The tenants that a grant covers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TenantScope {
    /// One tenant, by name.
    One(String),
    /// Every tenant, and the instance itself.
    All,
}

impl TenantScope {
    /// Parses a tenant's name, or `*` for all tenants.
    pub fn named(text: &str) -> Result<Self, String> {
        match text {
            "*" => Ok(Self::All),
            _ => match TenantName::new(text) {
                Ok(name) => Ok(Self::One(name.into())),
                Err(error) => Err(format!("{error}; * means all tenants")),
            },
        }
    }

    /// Whether it covers a tenant, or the whole instance if no tenant is given.
    pub fn covers(&self, tenant: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => tenant == Some(own),
        }
    }

    /// The tenant's name; none for all tenants.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::One(name) => Some(name),
            Self::All => None,
        }
    }
}

/// A pattern for workflow names: `*` matches any number of characters, `?` exactly one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern that matches every workflow.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// Parses a pattern; the error says what a pattern may contain.
    pub fn new(text: &str) -> Result<Self, String> {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.*?".contains(letter);
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES || !text.chars().all(letter) {
            return Err(format!(
                "`{text}` is not a pattern for workflow names; * matches any characters and ? matches one"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches every name.
    pub fn is_all(&self) -> bool {
        self.0.chars().all(|letter| letter == '*')
    }

    /// Whether it matches a name, in time proportional to the product of both lengths at worst.
    pub fn fits(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) = (self.0.chars().collect(), name.chars().collect());
        let (mut at, mut seen) = (0, 0);
        let mut star = None;
        while seen < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(letter) if *letter == '?' || *letter == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                // Mismatch: backtrack and let the last star match one more character.
                _ => match &mut star {
                    Some((place, taken)) => {
                        *taken += 1;
                        (at, seen) = (*place + 1, *taken);
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|letter| *letter == '*')
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.role, self.tenant.tenant().unwrap_or("*"))?;
        if self.workflows.is_all() { Ok(()) } else { write!(f, "/{}", self.workflows.as_str()) }
    }
}

impl FromStr for Grant {
    type Err = String;

    /// Parses `role`, `role:tenant` or `role:tenant/workflows`; the tenant `*` means all tenants.
    fn from_str(text: &str) -> Result<Self, String> {
        let (role, place) = text.split_once(':').unwrap_or((text, DEFAULT_TENANT));
        let (tenant, workflows) = place.split_once('/').unwrap_or((place, "*"));
        Ok(Self {
            role: role.parse()?,
            tenant: TenantScope::named(tenant)?,
            workflows: Pattern::new(workflows)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_parse_and_print() {
        for (text, written) in [
            ("viewer", "viewer:default"),
            ("admin:*", "admin:*"),
            ("author:acme", "author:acme"),
            ("operator:acme/etl-*", "operator:acme/etl-*"),
            ("partner:*/orders", "partner:*/orders"),
        ] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), written);
        }
        for bad in [
            "",
            "king",
            "viewer:",
            "viewer:a*",
            "viewer:a/",
            "viewer:a/b c",
            "viewer:a b",
            "viewer:..",
            "Viewer",
        ] {
            assert!(bad.parse::<Grant>().is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fits) in [
            ("*", "anything", true),
            ("etl", "etl", true),
            ("etl", "etl-2", false),
            ("etl-*", "etl-2", true),
            ("etl-*", "etl", false),
            ("*-eu", "etl-eu", true),
            ("*-eu", "etl-eu-2", false),
            ("e?l", "etl", true),
            ("e?l", "el", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("**", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pathological_pattern_is_not_slow() {
        let pattern = Pattern::new(&"*a".repeat(90)).unwrap();
        assert!(!pattern.fits(&format!("{}b", "a".repeat(5_000))));
    }
}
