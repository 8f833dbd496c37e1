//! A role that somebody has, and where.

use std::fmt;
use std::str::FromStr;

use crate::Role;

/// The tenant that is meant where none is named.
pub const DEFAULT_TENANT: &str = "default";

/// No name of a tenant and no pattern is longer, in bytes.
const LONGEST: usize = 200;

/// A role in a tenant, or in all of them, for all workflows or for some: `operator:acme/etl-*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Grant {
    /// What its holder is.
    pub role: Role,
    /// Where.
    pub tenant: Reach,
    /// For which workflows there.
    pub workflows: Pattern,
}

/// How far a grant reaches.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reach {
    /// One tenant, by name.
    One(String),
    /// Every tenant, and what belongs to none.
    All,
}

impl Reach {
    /// The tenant of that name, or all of them where it is `*`.
    pub fn named(text: &str) -> Result<Self, String> {
        match text {
            "*" => Ok(Self::All),
            _ if text.is_empty() || text.len() > LONGEST => {
                Err(format!("a tenant's name must have 1 to {LONGEST} characters"))
            }
            _ if text.contains(['*', '/', ',', '=', ':']) || text.contains(char::is_whitespace) => {
                Err(format!("`{text}` is not a tenant; use its name, or * for all tenants"))
            }
            _ => Ok(Self::One(text.to_owned())),
        }
    }

    /// Whether it covers a tenant, or where none is given, the whole instance.
    pub fn covers(&self, tenant: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => tenant == Some(own),
        }
    }

    /// The tenant, unless it is all of them.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::One(name) => Some(name),
            Self::All => None,
        }
    }
}

/// Names of workflows: `*` stands for any number of characters, `?` for one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pattern(String);

impl Pattern {
    /// Every workflow.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// A pattern, if it is one.
    pub fn new(text: &str) -> Result<Self, String> {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.*?".contains(letter);
        if text.is_empty() || text.len() > LONGEST || !text.chars().all(letter) {
            return Err(format!(
                "`{text}` is no pattern of workflows: write a name, where * stands for any characters and ? for one"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether every name fits.
    pub fn is_all(&self) -> bool {
        self.0.chars().all(|letter| letter == '*')
    }

    /// Whether a name fits. Takes no longer than both lengths multiplied, whatever the pattern.
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
                // The last star takes one character more.
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

    /// `role`, `role:tenant`, `role:tenant/workflows`; a tenant of `*` is all of them.
    fn from_str(text: &str) -> Result<Self, String> {
        let (role, place) = text.split_once(':').unwrap_or((text, DEFAULT_TENANT));
        let (tenant, workflows) = place.split_once('/').unwrap_or((place, "*"));
        Ok(Self { role: role.parse()?, tenant: Reach::named(tenant)?, workflows: Pattern::new(workflows)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_as_it_is_written() {
        for (text, written) in [
            ("viewer", "viewer:default"),
            ("admin:*", "admin:*"),
            ("author:acme", "author:acme"),
            ("operator:acme/etl-*", "operator:acme/etl-*"),
            ("partner:*/orders", "partner:*/orders"),
        ] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), written);
        }
        for bad in ["", "king", "viewer:", "viewer:a*", "viewer:a/", "viewer:a/b c", "viewer:a b", "Viewer"] {
            assert!(bad.parse::<Grant>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_fits_what_its_stars_leave_room_for() {
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
    fn a_pattern_made_to_take_long_does_not() {
        let pattern = Pattern::new(&"*a".repeat(90)).unwrap();
        assert!(!pattern.fits(&format!("{}b", "a".repeat(5_000))));
    }
}
