use ebbflow_auth::{Error, PushAuth};
use serde_json::{Value, json};

use crate::{ACCOUNT, AUDIENCE, HOUSE, ISSUER, at, claims, claims_with};

fn oidc() -> PushAuth {
    let verifier = HOUSE.verifier(AUDIENCE);
    PushAuth::Oidc { verifier, service_account: ACCOUNT.into() }
}

fn iam() -> PushAuth {
    PushAuth::Iam { audience: AUDIENCE.into(), service_account: ACCOUNT.into() }
}

async fn check(auth: &PushAuth, claims: &Value) -> Result<(), Error> {
    auth.check(Some(&format!("Bearer {}", HOUSE.sign(claims))), at(60)).await
}

/// A token as the platform forwards it, without its signature.
fn stripped(claims: &Value) -> String {
    let token = HOUSE.sign(claims);
    format!("Bearer {}.SIGNATURE_REMOVED_BY_GOOGLE", token.rsplit_once('.').unwrap().0)
}

fn google(name: &str, value: Value) -> Value {
    let mut claims = claims_with("iss", json!("https://accounts.google.com"));
    claims[name] = value;
    claims
}

#[tokio::test]
async fn our_subscriptions_may_push() {
    assert_eq!(check(&oidc(), &claims()).await, Ok(()));
    let lower_case = format!("bearer {}", HOUSE.sign(&claims()));
    assert_eq!(oidc().check(Some(&lower_case), at(0)).await, Ok(()));
}

#[tokio::test]
async fn a_missing_token_differs_from_an_invalid_one() {
    for header in [None, Some(""), Some("Bearer"), Some("Basic dXNlcjpwYXNz")] {
        assert_eq!(oidc().check(header, at(0)).await, Err(Error::Missing));
        assert_eq!(iam().check(header, at(0)).await, Err(Error::Missing));
    }
    assert!(matches!(oidc().check(Some("Bearer x"), at(0)).await, Err(Error::Malformed(_))));
}

#[tokio::test]
async fn another_valid_account_may_not_push() {
    for claims in [
        claims_with("email", json!("someone@else.test")),
        claims_with("email", Value::Null),
        claims_with("email_verified", json!(false)),
    ] {
        assert_eq!(check(&oidc(), &claims).await, Err(Error::WrongAccount));
    }
}

#[tokio::test]
async fn an_unsigned_token_is_accepted_only_behind_the_platforms_check() {
    let authorization = stripped(&google("sub", json!("1234")));
    assert_eq!(iam().check(Some(&authorization), at(60)).await, Ok(()));
    assert_eq!(oidc().check(Some(&authorization), at(60)).await, Err(Error::BadSignature));
}

#[tokio::test]
async fn claims_are_checked_behind_the_platforms_check() {
    let check = async |claims| iam().check(Some(&stripped(&claims)), at(60)).await;
    assert_eq!(check(google("email", json!("someone@else.test"))).await, Err(Error::WrongAccount));
    assert_eq!(check(google("email_verified", json!(false))).await, Err(Error::WrongAccount));
    assert_eq!(
        check(google("aud", json!("https://other.test"))).await,
        Err(Error::WrongAudience { expected: AUDIENCE.into() })
    );
    assert!(matches!(check(google("iss", json!(ISSUER))).await, Err(Error::WrongIssuer { .. })));
    assert_eq!(check(google("exp", json!(at(0).timestamp()))).await, Err(Error::Expired));
}

#[tokio::test]
async fn without_authentication_anyone_may_push() {
    assert_eq!(PushAuth::None.check(None, at(0)).await, Ok(()));
}
