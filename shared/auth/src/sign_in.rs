//! Signing in with a browser: OpenID Connect, by code, with PKCE.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};

use crate::seal::{challenge, random};
use crate::{Error, Identity, Trusted};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Where Google lets people sign in.
pub const GOOGLE_AUTHORIZE_URL: &str = "https://accounts.google.com/o/oauth2/v2/auth";

/// Where Google turns a code into tokens.
pub const GOOGLE_TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// How to sign in with a provider.
pub struct Provider {
    /// Where it asks people who they are.
    pub authorize_url: String,
    /// Where it turns codes into tokens.
    pub token_url: String,
    /// Who we are there.
    pub client_id: String,
    /// What we prove that with, if it wants us to.
    pub client_secret: Option<String>,
    /// Where it sends people back to.
    pub redirect_url: String,
    /// Checks its tokens, which must be for our client id.
    pub trusted: Trusted,
}

/// Somebody who is about to sign in: kept with their browser until they come back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Ties the way back to the way there.
    pub state: String,
    nonce: String,
    verifier: String,
    /// Where they wanted to go.
    pub to: String,
}

impl Attempt {
    /// Somebody who wants to get to that page.
    pub fn new(to: &str) -> Self {
        Self { state: random(), nonce: random(), verifier: random(), to: to.to_owned() }
    }
}

/// Signs people in with a provider.
pub struct SignIn {
    provider: Provider,
    client: Client,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl SignIn {
    /// With that provider.
    pub fn new(provider: Provider) -> Result<Self, Error> {
        let client = Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none());
        // A provider on this machine is reached without a proxy.
        let local =
            ["http://127.0.0.1", "http://localhost"].iter().any(|at| provider.token_url.starts_with(at));
        let client = if local { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| Error::KeysUnavailable(error.to_string()))?;
        Ok(Self { provider, client })
    }

    /// Where people come back to.
    pub fn redirect_url(&self) -> &str {
        &self.provider.redirect_url
    }

    /// Where to send somebody who is about to sign in.
    pub fn url(&self, attempt: &Attempt) -> Result<String, Error> {
        let mut url = Url::parse(&self.provider.authorize_url)
            .map_err(|error| Error::KeysUnavailable(format!("the provider's address: {error}")))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("scope", "openid email")
            .append_pair("client_id", &self.provider.client_id)
            .append_pair("redirect_uri", &self.provider.redirect_url)
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", &challenge(&attempt.verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Whoever came back with this code.
    pub async fn finish(&self, attempt: &Attempt, code: &str, now: DateTime<Utc>) -> Result<Identity, Error> {
        let token = self.exchange(attempt, code).await?;
        let claims = self.provider.trusted.verifier.verify(&token, now).await?;
        if claims.extra.get("nonce").and_then(|nonce| nonce.as_str()) != Some(&attempt.nonce) {
            return Err(Error::Malformed("it was issued for a different sign-in"));
        }
        Ok(Identity::new(&claims, self.provider.trusted.group_claim.as_deref()))
    }

    async fn exchange(&self, attempt: &Attempt, code: &str) -> Result<String, Error> {
        let away = |why: String| Error::KeysUnavailable(format!("signing in: the provider {why}"));
        let mut fields = Url::parse("form:").expect("a fixed text");
        fields
            .query_pairs_mut()
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.provider.redirect_url)
            .append_pair("client_id", &self.provider.client_id)
            .append_pair("code_verifier", &attempt.verifier);
        if let Some(secret) = &self.provider.client_secret {
            fields.query_pairs_mut().append_pair("client_secret", secret);
        }
        let body = fields.query().unwrap_or_default().to_owned();
        let request = self.client.post(&self.provider.token_url);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer = request.send().await.map_err(|error| away(format!("is unreachable: {error}")))?;
        if !answer.status().is_success() {
            return Err(Error::Malformed("the provider rejected the code"));
        }
        let tokens: Tokens = answer
            .json()
            .await
            .map_err(|error| away(format!("returned no token: {}", error.without_url())))?;
        Ok(tokens.id_token)
    }
}
