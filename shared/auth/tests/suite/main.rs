//! Valid tokens are accepted, and invalid ones are rejected with the reason.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod authenticator;
mod issuer;
mod keys;
mod proxy;
mod push;
mod verifier;

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use ebbflow_auth::Issuer;
use serde_json::{Value, json};

const ISSUER: &str = "https://issuer.test";
const AUDIENCE: &str = "https://evaluate.test";
const ACCOUNT: &str = "pusher@project.iam.gserviceaccount.com";

/// Generating a key takes a while, so tests share one.
static HOUSE: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate(ISSUER));

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

/// Valid claims, from 0 to 3600.
fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "1234",
        "aud": AUDIENCE,
        "iat": at(0).timestamp(),
        "exp": at(3600).timestamp(),
        "email": ACCOUNT,
        "email_verified": true,
    })
}

/// Valid claims except for one.
fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

/// Valid claims without one.
fn claims_without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}
