//! Whom an issuer vouches for, and which grants they have by configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Claims, Grant};

/// Somebody whose token was believed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Their name, as it stands in events: an address that the issuer vouches for, or else what it calls them.
    pub name: String,
    /// The address, if the issuer vouches for it. Another one may be anyone's.
    pub email: Option<String>,
    /// The groups that the issuer says they are in.
    pub groups: Vec<String>,
}

/// No more groups of a token are looked at.
const MAX_GROUPS: usize = 200;

impl Identity {
    /// What claims say; groups are read from that claim, a list or words.
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
        Self { name: email.clone().unwrap_or_else(|| claims.sub.clone()), email, groups }
    }

    /// Everyone that grants may name to mean them, in the way grants are written.
    pub fn known_as(&self) -> Vec<String> {
        let account = self.email.as_deref().map(|email| Who::Account(email.to_ascii_lowercase()));
        let domain = self.email.as_deref().and_then(|email| Some(email.rsplit_once('@')?.1));
        let domain = domain.map(|domain| Who::Domain(domain.to_ascii_lowercase()));
        let groups = self.groups.iter().map(|group| Who::Group(group.clone()));
        account.into_iter().chain(domain).chain(groups).map(|who| who.to_string()).collect()
    }
}

/// Whom a grant is for: `ada@example.com`, `@example.com` or `group:data`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    /// One account.
    Account(String),
    /// Every account of a domain.
    Domain(String),
    /// Everyone in a group.
    Group(String),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(email) => f.write_str(email),
            Self::Domain(domain) => write!(f, "@{domain}"),
            Self::Group(group) => write!(f, "group:{group}"),
        }
    }
}

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` names nobody; use an email address, @domain or group:NAME");
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

/// Who has which grants by configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy(Vec<(Who, Grant)>);

impl Policy {
    /// These.
    pub fn new(entries: impl IntoIterator<Item = (Who, Grant)>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// Reads `who=grant` entries, separated by commas or white space; all that is wrong is said.
    pub fn read(text: &str) -> Result<Self, Vec<String>> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for entry in text.split([',', ' ', '\n', '\t']).filter(|entry| !entry.is_empty()) {
            let read = entry
                .rsplit_once('=')
                .ok_or_else(|| format!("`{entry}` is not of the form WHO=ROLE"))
                .and_then(|(who, grant)| Ok::<_, String>((who.parse::<Who>()?, grant.parse::<Grant>()?)));
            match read {
                Ok(read) => entries.push(read),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(Self(entries)) } else { Err(problems) }
    }

    /// The same and these.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What somebody has. A public issuer signs tokens for anyone: being signed for says nothing about being meant.
    pub fn grants_of(&self, identity: &Identity) -> Vec<Grant> {
        let names = identity.known_as();
        let meant = |who: &Who| names.contains(&who.to_string());
        self.0.iter().filter(|(who, _)| meant(who)).map(|(_, grant)| grant.clone()).collect()
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
    fn a_group_cannot_pass_for_an_account() {
        let policy = Policy::read("ada@example.com=admin:*").unwrap();
        assert_eq!(policy.grants_of(&identity("", false, json!(["ada@example.com"]))), []);
    }

    #[test]
    fn every_entry_that_is_wrong_is_said() {
        let problems = Policy::read("ada=admin, ada@x=king, @=viewer, nobody, ada@x=viewer").unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
    }
}
