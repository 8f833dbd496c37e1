//! Identities, and the grants that the configuration gives them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Claims, Grant};

/// An authenticated person or program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Their name in events and audit entries: the verified email address, or else the issuer and the subject of the token,
    /// as in `login.example.com#1234`.
    pub name: String,
    /// The email address, if the issuer has verified it.
    pub email: Option<String>,
    /// Their groups, according to the issuer.
    pub groups: Vec<String>,
}

/// The maximum number of groups that are read from a token.
const MAX_GROUPS: usize = 200;

impl Identity {
    /// The identity in a token's claims. `group_claim` is a list of groups, or a text with groups separated by spaces.
    pub fn new(claims: &Claims, group_claim: Option<&str>) -> Self {
        let email = claims.email.clone().filter(|_| claims.email_verified);
        let groups = group_claim.and_then(|claim| claims.extra.get(claim));
        let groups = match groups {
            Some(serde_json::Value::Array(list)) => {
                list.iter().filter_map(|group| Some(group.as_str()?.to_owned())).take(MAX_GROUPS).collect()
            }
            Some(serde_json::Value::String(words)) => {
                words.split_whitespace().map(ToOwned::to_owned).take(MAX_GROUPS).collect()
            }
            _ => Vec::new(),
        };
        Self { name: email.clone().unwrap_or_else(|| subject(claims)), email, groups }
    }

    /// The principals whose grants apply to them, as grants spell them.
    pub fn principals(&self) -> Vec<String> {
        let account = self.email.as_deref().map(|email| Principal::Account(email.to_ascii_lowercase()));
        let domain = self.email.as_deref().and_then(|email| Some(email.rsplit_once('@')?.1));
        let domain = domain.map(|domain| Principal::Domain(domain.to_ascii_lowercase()));
        let groups = self.groups.iter().map(|group| Principal::Group(group.clone()));
        account.into_iter().chain(domain).chain(groups).map(|who| who.to_string()).collect()
    }
}

/// A subject with its issuer: two issuers may use one subject for two people, and a subject may look like an address. An issuer's
/// URL has no `#`, so no pair looks like another one, nor like an address.
fn subject(claims: &Claims) -> String {
    // Google calls itself both with and without a scheme.
    let issuer = claims.iss.trim_start_matches("https://");
    format!("{issuer}#{}", claims.sub)
}

/// The holder of a grant: `ada@example.com`, `@example.com` or `group:data`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Principal {
    /// One account, by its email address.
    Account(String),
    /// All accounts of a domain.
    Domain(String),
    /// All members of a group.
    Group(String),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(email) => f.write_str(email),
            Self::Domain(domain) => write!(f, "@{domain}"),
            Self::Group(group) => write!(f, "group:{group}"),
        }
    }
}

impl FromStr for Principal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a principal; use an email address, @domain or group:NAME");
        if text.len() > 320 || text.chars().any(|letter| letter.is_control()) {
            return Err(bad());
        }
        if let Some(group) = text.strip_prefix("group:").filter(|group| !group.is_empty()) {
            return Ok(Self::Group(group.to_owned()));
        }
        match text.split_once('@') {
            Some((_, domain)) if domain.is_empty() || text.contains(char::is_whitespace) => Err(bad()),
            Some(("", domain)) => Ok(Self::Domain(domain.to_ascii_lowercase())),
            Some(_) => Ok(Self::Account(text.to_ascii_lowercase())),
            None => Err(bad()),
        }
    }
}

/// The grants that the configuration makes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy(Vec<(Principal, Grant)>);

impl Policy {
    /// A policy of these grants.
    pub fn new(entries: impl IntoIterator<Item = (Principal, Grant)>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// Parses `PRINCIPAL=GRANT` entries, separated by commas or white space. Returns all errors at once.
    pub fn read(text: &str) -> Result<Self, Vec<String>> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for entry in text.split([',', ' ', '\n', '\t']).filter(|entry| !entry.is_empty()) {
            let read = entry
                .rsplit_once('=')
                .ok_or_else(|| format!("`{entry}` is not of the form PRINCIPAL=ROLE"))
                .and_then(|(who, grant)| {
                    Ok::<_, String>((who.parse::<Principal>()?, grant.parse::<Grant>()?))
                });
            match read {
                Ok(read) => entries.push(read),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(Self(entries)) } else { Err(problems) }
    }

    /// Adds the grants of another policy.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether it grants nothing to anyone.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants of an identity. One that no entry names has none: a public issuer signs tokens for anyone.
    pub fn grants_of(&self, identity: &Identity) -> Vec<Grant> {
        let principals = identity.principals();
        let applies = |principal: &Principal| principals.contains(&principal.to_string());
        self.0.iter().filter(|(principal, _)| applies(principal)).map(|(_, grant)| grant.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn identity(email: &str, verified: bool, groups: Value) -> Identity {
        let claims = json!({"iss": "i", "sub": "s", "aud": "a", "exp": 1, "email": email, "email_verified": verified, "groups": groups});
        Identity::new(&serde_json::from_value(claims).unwrap(), Some("groups"))
    }

    #[test]
    fn only_named_accounts_domains_and_groups_have_grants() {
        let policy =
            Policy::read("ada@example.com=admin:*, @Example.org=viewer\ngroup:data=author:acme").unwrap();
        for (email, verified, groups, held) in [
            ("ada@example.com", true, json!([]), "admin:*"),
            ("Ada@Example.com", true, json!([]), "admin:*"),
            ("ada@example.com", false, json!([]), ""),
            ("eve@example.com", true, json!([]), ""),
            ("eve@example.org", true, json!([]), "viewer:default"),
            ("eve@example.org", true, json!(["data", 7]), "viewer:default author:acme"),
            ("eve@example.com", false, json!("ops data"), "author:acme"),
            ("eve@example.com", true, json!({"data": true}), ""),
            ("eve@sub.example.org", true, json!([]), ""),
            ("eve@evil.com@example.org.evil.com", true, json!([]), ""),
            ("example.org", true, json!([]), ""),
        ] {
            let grants = policy.grants_of(&identity(email, verified, groups));
            let grants: Vec<String> = grants.iter().map(Grant::to_string).collect();
            assert_eq!(grants.join(" "), held, "{email}");
        }
    }

    #[test]
    fn a_subject_belongs_to_its_issuer_and_is_no_address() {
        let name = |issuer: &str, sub: &str, verified: bool| {
            let claims = json!({
                "iss": issuer, "sub": sub, "aud": "a", "exp": 1, "email": "ada@example.com", "email_verified": verified,
            });
            Identity::new(&serde_json::from_value(claims).unwrap(), None).name
        };
        assert_eq!(name("https://login.example.com", "1234", false), "login.example.com#1234");
        assert_ne!(name("https://one.example", "1", false), name("https://two.example", "1", false));
        assert_ne!(name("https://one.example", "a/1", false), name("https://one.example/a", "1", false));
        assert_eq!(name("https://accounts.google.com", "7", false), name("accounts.google.com", "7", false));
        assert_ne!(name("https://one.example", "ada@example.com", false), "ada@example.com");
        assert_eq!(name("https://one.example", "1234", true), "ada@example.com");
    }

    #[test]
    fn a_group_cannot_pass_for_an_account() {
        let policy = Policy::read("ada@example.com=admin:*").unwrap();
        assert_eq!(policy.grants_of(&identity("", false, json!(["ada@example.com"]))), []);
    }

    #[test]
    fn every_invalid_entry_is_reported() {
        let problems = Policy::read("ada=admin, ada@x=king, @=viewer, nobody, ada@x=viewer").unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
    }
}
