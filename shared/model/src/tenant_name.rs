//! The names of tenants.

use std::fmt;

use crate::TenantId;

/// The name of a tenant: lower-case letters and digits, with single hyphens between them. So it is a folder's name, never a
/// path, and different names stay different in variables, where they are in upper case with `_` for `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TenantName(String);

/// A text that cannot be the name of a tenant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{}` is not a valid name: a tenant's name has only lower-case letters, digits and single hyphens between them, and at \
     most 63 characters", .0.escape_debug()
)]
pub struct InvalidTenantName(String);

impl TenantName {
    /// The maximum number of characters.
    pub const MAX_CHARS: usize = 63;
    /// The rule as a regular expression, without anchors and without the maximum length.
    pub const PATTERN: &str = "[a-z0-9]+(-[a-z0-9]+)*";

    /// The name, if it follows the rule.
    pub fn new(name: &str) -> Result<Self, InvalidTenantName> {
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_word = |word: &str| !word.is_empty() && word.chars().all(is_letter);
        match name.len() <= Self::MAX_CHARS && name.split('-').all(is_word) {
            true => Ok(Self(name.to_owned())),
            false => Err(InvalidTenantName(name.chars().take(Self::MAX_CHARS).collect())),
        }
    }

    /// The name of [`TenantId::DEFAULT`].
    pub fn default_tenant() -> Self {
        Self(TenantId::DEFAULT_NAME.to_owned())
    }

    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<TenantName> for String {
    fn from(name: TenantName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_hyphens_between_them() {
        for name in ["default", "acme", "a", "9", "acme-north-2", &"a".repeat(TenantName::MAX_CHARS)] {
            assert_eq!(TenantName::new(name).map(String::from), Ok(name.to_owned()));
        }
        assert_eq!(TenantName::default_tenant(), TenantName::new(TenantId::DEFAULT_NAME).unwrap());
    }

    #[test]
    fn paths_and_names_that_a_variable_cannot_tell_apart_are_rejected() {
        let long = "a".repeat(TenantName::MAX_CHARS + 1);
        for name in [
            "", ".", "..", "../a", "a/b", "a\\b", "a.b", "a_b", "A", "-a", "a-", "a--b", "a b", "ä", "a\n",
            &long,
        ] {
            assert!(TenantName::new(name).is_err(), "{name}");
        }
    }
}
