//! The names of secrets.

use std::fmt;

/// The name of a secret: letters, digits, `_` and `-`, beginning with a letter or `_`. It never is a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SecretName(String);

/// A text that cannot be the name of a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{}` is not a valid name: a secret's name has only letters, digits, `_` and `-`, begins with a letter or `_`, and \
     has at most 100 characters", .0.escape_debug()
)]
pub struct InvalidSecretName(String);

impl SecretName {
    /// The maximum number of characters.
    pub const MAX_CHARS: usize = 100;
    /// The rule as a regular expression, without anchors.
    pub const PATTERN: &str = "[A-Za-z_][A-Za-z0-9_-]{0,99}";

    /// The name, if it follows the rule.
    pub fn new(name: &str) -> Result<Self, InvalidSecretName> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        match name.starts_with(is_first) && name.chars().all(is_part) && name.len() <= Self::MAX_CHARS {
            true => Ok(Self(name.to_owned())),
            false => Err(InvalidSecretName(name.chars().take(Self::MAX_CHARS).collect())),
        }
    }

    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for name in ["API_KEY", "api-key", "_x", "a", "A9"] {
            assert_eq!(SecretName::new(name).map(String::from), Ok(name.to_owned()));
        }
    }

    #[test]
    fn paths_and_odd_names_are_rejected() {
        let long = "a".repeat(SecretName::MAX_CHARS + 1);
        for name in ["", "/etc/hostname", "../issuer.pem", "a/b", "a.b", "9a", "-a", "a b", "ä", "a\n", &long]
        {
            assert!(SecretName::new(name).is_err(), "{name}");
        }
    }
}
