//! The local identity: one key signs the pushes of the broker and the admin's token.

use std::sync::Arc;

use auth::{Authenticator, Issuer, Policy, PushAuth};
use model::Instant;
use serde_json::json;

use super::folder::DataFolder;

/// The account that the local broker pushes as.
pub(super) const PUSHER: &str = "pusher@ebbflow.local";

/// The audience of pushes, which no API token has.
pub(super) const PUSH_AUDIENCE: &str = "ebbflow-push";

/// The audience of API tokens, which no push token has.
pub(super) const API_AUDIENCE: &str = "ebbflow-api";

/// The account that may use the API.
pub(super) const ADMIN: &str = "admin@ebbflow.local";

const DAYS: i64 = 24 * 60 * 60;

#[derive(Clone)]
pub(super) struct LocalIssuer {
    issuer: Arc<Issuer>,
}

impl LocalIssuer {
    pub(super) fn open(folder: &DataFolder, url: &str) -> anyhow::Result<Self> {
        Ok(Self { issuer: Arc::new(Issuer::load_or_create(&folder.file("issuer.pem"), url)?) })
    }

    pub(super) fn issuer(&self) -> Arc<Issuer> {
        self.issuer.clone()
    }

    pub(super) fn push_auth(&self) -> PushAuth {
        PushAuth::Oidc { verifier: self.issuer.verifier(PUSH_AUDIENCE), service_account: PUSHER.into() }
    }

    /// Accepts the admin's token.
    pub(super) fn admin_auth(&self) -> PushAuth {
        PushAuth::Oidc { verifier: self.issuer.verifier(API_AUDIENCE), service_account: ADMIN.into() }
    }

    pub(super) fn push_token(&self, now: Instant) -> String {
        self.issuer.push_token(PUSHER, PUSH_AUDIENCE, now)
    }

    /// Accepts our own tokens for the API.
    pub(super) fn authenticator(&self) -> Authenticator {
        Authenticator::new([self.issuer.verifier(API_AUDIENCE).into()])
    }

    /// Grants the admin every permission.
    pub(super) fn policy(&self) -> Policy {
        Policy::read(&format!("{ADMIN}=admin:*")).expect("the address is valid")
    }

    /// The admin's token for the command line; it expires after thirty days.
    pub(super) fn admin_token(&self, now: Instant) -> String {
        let now = now.timestamp();
        self.issuer.sign(&json!({
            "iss": self.issuer.url(),
            "sub": "admin",
            "aud": API_AUDIENCE,
            "email": ADMIN,
            "email_verified": true,
            "iat": now,
            "exp": now + 30 * DAYS,
        }))
    }
}
