//! Which accounts are let in, of all those that an issuer vouches for.

use crate::{Claims, Error};

/// The accounts that are let in: addresses, and whole domains written as `@example.com`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accounts(Vec<String>);

impl Accounts {
    /// These addresses and domains.
    pub fn new<I: Into<String>>(entries: impl IntoIterator<Item = I>) -> Self {
        Self(entries.into_iter().map(Into::into).collect())
    }

    /// Lets the bearer of these claims in, known by an address that the issuer vouches for, or refuses. A public
    /// issuer signs tokens for anyone: being signed for says nothing about being meant.
    pub fn admit(&self, claims: &Claims) -> Result<(), Error> {
        let email = claims.email.as_deref().filter(|_| claims.email_verified).ok_or(Error::WrongAccount)?;
        let admits = |entry: &String| match entry.strip_prefix('@') {
            Some(domain) => email.rsplit_once('@').is_some_and(|(_, of)| of.eq_ignore_ascii_case(domain)),
            None => email.eq_ignore_ascii_case(entry),
        };
        if self.0.iter().any(admits) { Ok(()) } else { Err(Error::WrongAccount) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(email: &str, verified: bool) -> Claims {
        let claims =
            json!({"iss": "i", "sub": "s", "aud": "a", "exp": 1, "email": email, "email_verified": verified});
        serde_json::from_value(claims).unwrap()
    }

    #[test]
    fn only_named_accounts_and_domains_are_admitted() {
        let accounts = Accounts::new(["ada@example.com", "@example.org"]);
        for (email, verified, admitted) in [
            ("ada@example.com", true, true),
            ("Ada@Example.com", true, true),
            ("ada@example.com", false, false),
            ("eve@example.com", true, false),
            ("eve@example.org", true, true),
            ("eve@sub.example.org", true, false),
            ("eve@evil.com@example.org.evil.com", true, false),
            ("example.org", true, false),
        ] {
            assert_eq!(accounts.admit(&claims(email, verified)).is_ok(), admitted, "{email}");
        }
    }
}
