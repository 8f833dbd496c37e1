//! Access to the API: which tokens are accepted, and which roles the configuration grants.

use auth::{
    Authenticator, GOOGLE_AUTHORIZE_URL, GOOGLE_INTROSPECTION_URL, GOOGLE_ISSUERS, GOOGLE_KEYS_URL,
    GOOGLE_TOKEN_URL, Grant, Introspector, Keys, Pattern, Policy, Principal, Provider, Role, SignIn,
    TenantScope, TrustedIssuer, Verifier,
};
use serde::Deserialize;

use super::{Reader, TokenConfig};
use crate::Secrets;

/// Requests a second: far more than a person sends, and less than overloads an instance.
const DEFAULT_RATE: u32 = 1_000;

/// The shortest key to seal sessions with, in characters.
const MIN_KEY_LENGTH: usize = 32;

/// Access to the API: who may use it, and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiConfig {
    /// The issuers whose signed tokens are accepted: `EBB_API_AUDIENCE` and related settings, and `EBB_API_ISSUERS`.
    pub issuers: Vec<IssuerConfig>,
    /// The server that introspects opaque tokens.
    pub introspection: Option<IntrospectionConfig>,
    /// Roles by configuration: `EBB_API_ACCOUNTS` are admins of every tenant, `EBB_API_GRANTS` lists the others.
    pub policy: Policy,
    /// How people sign in with a browser.
    pub sign_in: Option<SignInConfig>,
    /// `EBB_RATE_CALLER`: the maximum requests per second of one account or token; 0 for no limit.
    pub rate_per_caller: u32,
    /// `EBB_RATE_TENANT`: the maximum requests per second of one tenant; 0 for no limit.
    pub rate_per_tenant: u32,
    /// `EBB_QUOTA_WORKFLOWS`: the maximum number of workflows of a tenant; 0 for no limit.
    pub workflow_quota: u32,
}

/// How people sign in with a browser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignInConfig {
    /// `EBB_SIGN_IN_CLIENT_ID`: our client id at the provider.
    pub client_id: String,
    /// `EBB_SIGN_IN_CLIENT_SECRET`: our client secret, if the provider requires one.
    pub client_secret: Option<String>,
    /// `EBB_SIGN_IN_AUTHORIZE_URL`: where people authenticate.
    pub authorize_url: String,
    /// `EBB_SIGN_IN_TOKEN_URL`: where codes are exchanged for tokens.
    pub token_url: String,
    /// `EBB_CONSOLE_URL`: where the provider redirects to.
    pub console_url: String,
    /// `EBB_SESSION_KEY`: seals sessions; the same for all instances.
    pub session_key: String,
}

/// An issuer of signed tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IssuerConfig {
    /// Its names, its keys, and the audience of its tokens.
    pub tokens: TokenConfig,
    /// `EBB_API_GROUP_CLAIM`: the claim that names groups.
    pub group_claim: Option<String>,
}

/// The server that introspects opaque tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntrospectionConfig {
    /// `EBB_API_INTROSPECTION_URL`: Google's by default.
    pub url: String,
    /// `EBB_API_INTROSPECTION_AUDIENCES`: the accepted audiences, separated by commas.
    pub audiences: Vec<String>,
}

/// An entry of `EBB_API_ISSUERS`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerEntry {
    issuer: String,
    audience: String,
    keys_url: String,
    #[serde(default)]
    group_claim: Option<String>,
}

impl ApiConfig {
    /// The authenticator for the configured issuers.
    pub fn authenticator(&self) -> Result<Authenticator, auth::Error> {
        let trusted = |config: &IssuerConfig| {
            Ok(TrustedIssuer { verifier: config.tokens.build()?, group_claim: config.group_claim.clone() })
        };
        let trusted = self.issuers.iter().map(trusted).collect::<Result<Vec<_>, auth::Error>>()?;
        let authenticator = Authenticator::new(trusted);
        Ok(match &self.introspection {
            Some(config) => {
                authenticator.with_introspection(Introspector::new(&config.url, config.audiences.clone())?)
            }
            None => authenticator,
        })
    }

    /// Sign-in as a client of the first trusted issuer, if configured.
    pub fn sign_in(&self) -> Result<Option<SignIn>, auth::Error> {
        let (Some(config), Some(issuer)) = (&self.sign_in, self.issuers.first()) else { return Ok(None) };
        let keys = Keys::remote(&issuer.tokens.keys_url)?;
        let verifier = Verifier::new(issuer.tokens.issuers.clone(), config.client_id.clone(), keys);
        let provider = Provider {
            authorize_url: config.authorize_url.clone(),
            token_url: config.token_url.clone(),
            client_id: config.client_id.clone(),
            client_secret: config.client_secret.clone(),
            redirect_url: format!("{}/sign-in/callback", config.console_url.trim_end_matches('/')),
            trusted: TrustedIssuer { verifier, group_claim: issuer.group_claim.clone() },
        };
        SignIn::new(provider).map(Some)
    }
}

/// Grants these accounts and domains the role admin in every tenant.
fn admins(accounts: &str) -> Result<Policy, Vec<String>> {
    let grant = Grant { role: Role::Admin, tenant: TenantScope::All, workflows: Pattern::all() };
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for account in accounts.split(',').map(str::trim).filter(|account| !account.is_empty()) {
        match account.parse::<Principal>() {
            Ok(who) => entries.push((who, grant.clone())),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(Policy::new(entries)) } else { Err(problems) }
}

impl Reader<'_> {
    /// The secrets of workflows.
    pub(super) fn secrets(&mut self) -> Secrets {
        Secrets::from_env(self.environment).unwrap_or_else(|problems| {
            self.problems.extend(problems);
            Secrets::default()
        })
    }

    pub(super) fn api(&mut self) -> Option<ApiConfig> {
        let audience = self.optional("EBB_API_AUDIENCE")?;
        let mut issuers = vec![IssuerConfig {
            tokens: self.tokens("EBB_API", &GOOGLE_ISSUERS, GOOGLE_KEYS_URL),
            group_claim: self.optional("EBB_API_GROUP_CLAIM"),
        }];
        issuers.extend(self.more_issuers());
        let audiences = issuers.iter().map(|issuer| issuer.tokens.audience.clone());
        let audiences: Vec<String> = audiences.chain([audience]).collect();
        if self.optional("EBB_PUSH_AUDIENCE").is_some_and(|push| audiences.contains(&push)) {
            self.problems.push(
                "EBB_API_AUDIENCE and EBB_PUSH_AUDIENCE are the same: tokens for one must not be valid for the other"
                    .into(),
            );
        }
        Some(ApiConfig {
            issuers,
            introspection: self.introspection(),
            policy: self.policy(),
            sign_in: self.sign_in(),
            rate_per_caller: self.number("EBB_RATE_CALLER", DEFAULT_RATE),
            rate_per_tenant: self.number("EBB_RATE_TENANT", 2 * DEFAULT_RATE),
            workflow_quota: self.number("EBB_QUOTA_WORKFLOWS", 10_000),
        })
    }

    fn sign_in(&mut self) -> Option<SignInConfig> {
        let client_id = self.optional("EBB_SIGN_IN_CLIENT_ID")?;
        let session_key = self.needed("EBB_SESSION_KEY", "64 random characters");
        if (1..MIN_KEY_LENGTH).contains(&session_key.len()) {
            self.problems.push(format!("EBB_SESSION_KEY has fewer than {MIN_KEY_LENGTH} characters"));
        }
        let url = |found: Option<String>, google: &str| found.unwrap_or_else(|| google.to_owned());
        Some(SignInConfig {
            client_id,
            client_secret: self.optional("EBB_SIGN_IN_CLIENT_SECRET"),
            authorize_url: url(self.optional("EBB_SIGN_IN_AUTHORIZE_URL"), GOOGLE_AUTHORIZE_URL),
            token_url: url(self.optional("EBB_SIGN_IN_TOKEN_URL"), GOOGLE_TOKEN_URL),
            console_url: self.needed("EBB_CONSOLE_URL", "https://console.example.com"),
            session_key,
        })
    }

    fn more_issuers(&mut self) -> Vec<IssuerConfig> {
        let Some(text) = self.optional("EBB_API_ISSUERS") else { return Vec::new() };
        let entries: Vec<IssuerEntry> = match serde_json::from_str(&text) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(format!(
                    "EBB_API_ISSUERS is not a JSON list of {{issuer, audience, keys_url, group_claim}}: {error}"
                ));
                return Vec::new();
            }
        };
        let config = |entry: IssuerEntry| IssuerConfig {
            tokens: TokenConfig {
                issuers: vec![entry.issuer],
                audience: entry.audience,
                keys_url: entry.keys_url,
            },
            group_claim: entry.group_claim,
        };
        entries.into_iter().map(config).collect()
    }

    fn introspection(&mut self) -> Option<IntrospectionConfig> {
        let audiences = self.optional("EBB_API_INTROSPECTION_AUDIENCES");
        let url = self.optional("EBB_API_INTROSPECTION_URL");
        if audiences.is_none() && url.is_some() {
            self.problems.push(
                "EBB_API_INTROSPECTION_AUDIENCES is not set: tokens issued for other services must not be valid here"
                    .into(),
            );
        }
        let audiences = audiences?.split(',').map(|entry| entry.trim().to_owned()).collect();
        Some(IntrospectionConfig {
            url: url.unwrap_or_else(|| GOOGLE_INTROSPECTION_URL.to_owned()),
            audiences,
        })
    }

    fn policy(&mut self) -> Policy {
        let mut policy = Policy::default();
        let accounts = self.optional("EBB_API_ACCOUNTS").map(|text| ("EBB_API_ACCOUNTS", admins(&text)));
        let grants = self.optional("EBB_API_GRANTS").map(|text| ("EBB_API_GRANTS", Policy::read(&text)));
        if accounts.is_none() && grants.is_none() {
            self.problems.push(
                "neither EBB_API_ACCOUNTS (admins, for example ada@example.com,@example.org) nor EBB_API_GRANTS (for example ada@example.com=admin:*) is set: nobody could use the API"
                    .into(),
            );
        }
        for (name, read) in accounts.into_iter().chain(grants) {
            match read {
                Ok(read) => policy = policy.and(read),
                Err(problems) => {
                    self.problems.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
                }
            }
        }
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    const BASE: [(&str, &str); 4] = [
        ("DATABASE_URL", "postgres://x/y"),
        ("EBB_PROJECT", "p"),
        ("EBB_PUSH_AUTH", "none"),
        ("EBB_API_AUDIENCE", "https://a"),
    ];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        BASE.iter().chain(more).copied().collect()
    }

    #[test]
    fn an_api_needs_grants_and_a_separate_audience() {
        let variables = [("EBB_API_AUDIENCE", "https://a"), ("EBB_PUSH_AUDIENCE", "https://a")];
        let problems = read(&variables).unwrap_err().to_string();
        assert!(problems.contains("EBB_API_ACCOUNTS") && problems.contains("are the same"), "{problems}");
    }

    #[test]
    fn each_of_several_issuers_is_trusted_for_its_own_audience() {
        let issuers = r#"[{"issuer": "https://i", "audience": "b", "keys_url": "https://i/keys", "group_claim": "groups"}]"#;
        let api = read(&with(&[("EBB_API_ACCOUNTS", "@x.org"), ("EBB_API_ISSUERS", issuers)])).unwrap().api;
        let issuers = api.unwrap().issuers;
        assert_eq!(issuers.len(), 2);
        assert_eq!((issuers[0].tokens.audience.as_str(), &issuers[0].group_claim), ("https://a", &None));
        assert_eq!(
            (issuers[1].tokens.audience.as_str(), issuers[1].group_claim.as_deref()),
            ("b", Some("groups"))
        );
    }

    #[test]
    fn every_invalid_grant_is_reported() {
        let variables = with(&[("EBB_API_GRANTS", "ada@x.org=king, bob"), ("EBB_API_ISSUERS", "{}")]);
        let problems = read(&variables).unwrap_err().to_string();
        for part in ["unknown role `king`", "`bob` is not of the form PRINCIPAL=ROLE", "EBB_API_ISSUERS"] {
            assert!(problems.contains(part), "{part} is missing in:\n{problems}");
        }
    }

    #[test]
    fn opaque_tokens_need_a_list_of_accepted_audiences() {
        let variables =
            with(&[("EBB_API_ACCOUNTS", "@x.org"), ("EBB_API_INTROSPECTION_URL", "https://i/info")]);
        let problems = read(&variables).unwrap_err().to_string();
        assert!(problems.contains("EBB_API_INTROSPECTION_AUDIENCES"), "{problems}");
    }
}
