//! Sign-in with a browser: OpenID Connect with the authorization code flow and PKCE.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, RequestBuilder, Url};
use serde::{Deserialize, Serialize};

use crate::seal::{challenge, random};
use crate::{Error, Identity, TrustedIssuer};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The endpoint where Google asks a person to sign in.
pub const GOOGLE_AUTHORIZE_URL: &str = "https://accounts.google.com/o/oauth2/v2/auth";

/// The endpoint where Google exchanges a code for tokens.
pub const GOOGLE_TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// An OpenID Connect provider, and our registration with it.
pub struct Provider {
    /// The endpoint where a person signs in.
    pub authorize_url: String,
    /// The token endpoint, which exchanges codes for tokens.
    pub token_url: String,
    /// The client id that the provider gave us.
    pub client_id: String,
    /// Our client secret, if the provider requires one.
    pub client_secret: Option<String>,
    /// Where the provider redirects browsers to.
    pub redirect_url: String,
    /// Verifies the provider's tokens; their audience must be our client id.
    pub trusted: TrustedIssuer,
}

/// A sign-in in progress: sealed in a cookie until the browser returns from the provider.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// Ties the provider's redirect to this sign-in.
    pub state: String,
    nonce: String,
    verifier: String,
    /// The page to open afterwards.
    pub to: String,
}

impl PendingSignIn {
    /// A new sign-in that leads to a page.
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
    /// Sign-in with a provider.
    pub fn new(provider: Provider) -> Result<Self, Error> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        // A provider on this machine is reached without a proxy.
        let local =
            ["http://127.0.0.1", "http://localhost"].iter().any(|at| provider.token_url.starts_with(at));
        let client = if local { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| Error::KeysUnavailable(error.to_string()))?;
        Ok(Self { provider, client })
    }

    /// Where the provider redirects browsers to.
    pub fn redirect_url(&self) -> &str {
        &self.provider.redirect_url
    }

    /// The provider's URL that starts a sign-in.
    pub fn url(&self, attempt: &PendingSignIn) -> Result<String, Error> {
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

    /// Exchanges the code of a sign-in for the identity of the person.
    pub async fn finish(
        &self,
        attempt: &PendingSignIn,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<Identity, Error> {
        let token = self.exchange(attempt, code).await?;
        let claims = self.provider.trusted.verifier.verify(&token, now).await?;
        if claims.extra.get("nonce").and_then(|nonce| nonce.as_str()) != Some(&attempt.nonce) {
            return Err(Error::Malformed("it was issued for a different sign-in"));
        }
        Ok(Identity::new(&claims, self.provider.trusted.group_claim.as_deref()))
    }

    async fn exchange(&self, attempt: &PendingSignIn, code: &str) -> Result<String, Error> {
        let unavailable = |reason: String| Error::KeysUnavailable(format!("sign-in: the provider {reason}"));
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.provider.redirect_url),
            ("client_id", &self.provider.client_id),
            ("code_verifier", &attempt.verifier),
        ];
        fields.extend(self.provider.client_secret.as_deref().map(|secret| ("client_secret", secret)));
        let request = form(self.client.post(&self.provider.token_url), &fields);
        let response =
            request.send().await.map_err(|error| unavailable(format!("is unreachable: {error}")))?;
        if !response.status().is_success() {
            return Err(Error::Malformed("the provider rejected the code"));
        }
        let tokens: Tokens = response
            .json()
            .await
            .map_err(|error| unavailable(format!("returned no token: {}", error.without_url())))?;
        Ok(tokens.id_token)
    }
}

/// The request with these fields as a URL-encoded form.
pub(crate) fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut url = Url::parse("form:").expect("a constant");
    url.query_pairs_mut().extend_pairs(fields);
    let body = url.query().unwrap_or_default().to_owned();
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}
