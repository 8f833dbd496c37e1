use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use ebbflow_auth::{Authenticator, Error, Introspector, Issuer, Keys, TrustedIssuer, Verifier};
use serde_json::{Value, json};

use crate::{ACCOUNT, AUDIENCE, HOUSE, ISSUER, at, claims, claims_with};

const OTHER: &str = "https://other.test";

fn trusted(issuer: &Issuer, name: &str, audience: &str) -> TrustedIssuer {
    let verifier = Verifier::new([name], audience, Keys::fixed(&issuer.jwks()));
    TrustedIssuer { verifier, group_claim: Some("groups".into()) }
}

#[tokio::test]
async fn each_issuer_is_trusted_with_its_own_keys_and_audience() {
    let other = Issuer::generate(OTHER);
    let authenticator =
        Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE), trusted(&other, OTHER, "theirs")]);
    let ours = authenticator.identify(&HOUSE.sign(&claims()), at(0)).await.unwrap();
    assert_eq!((ours.name.as_str(), ours.email.as_deref()), (ACCOUNT, Some(ACCOUNT)));
    let mut claims = claims_with("iss", json!(OTHER));
    claims["aud"] = json!("theirs");
    claims["groups"] = json!(["data"]);
    assert_eq!(authenticator.identify(&other.sign(&claims), at(0)).await.unwrap().groups, ["data"]);
    // Neither audience nor keys are shared.
    assert_eq!(authenticator.identify(&HOUSE.sign(&claims), at(0)).await, Err(Error::UnknownKey));
    claims["aud"] = json!(AUDIENCE);
    let wrong = authenticator.identify(&other.sign(&claims), at(0)).await;
    assert_eq!(wrong, Err(Error::WrongAudience { expected: "theirs".into() }));
    let stranger = authenticator.identify(&HOUSE.sign(&claims_with("iss", json!("https://x"))), at(0)).await;
    assert_eq!(stranger, Err(Error::WrongIssuer { expected: format!("{ISSUER} or {OTHER}") }));
}

#[tokio::test]
async fn an_unverified_address_is_not_a_name() {
    let authenticator = Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE)]);
    let identity =
        authenticator.identify(&HOUSE.sign(&claims_with("email_verified", json!(false))), at(0)).await;
    let identity = identity.unwrap();
    let subject = format!("{}#1234", ISSUER.trim_start_matches("https://"));
    assert_eq!((identity.name, identity.email), (subject, None));
}

/// An introspection endpoint that returns this response and counts requests.
async fn introspector(status: StatusCode, response: Value) -> (Introspector, Arc<AtomicUsize>) {
    let requests = Arc::<AtomicUsize>::default();
    let counter = requests.clone();
    let answer = move |body: String| async move {
        counter.fetch_add(1, Ordering::SeqCst);
        assert!(body.starts_with("access_token=ya29.secret&token=ya29.secret"), "{body}");
        (status, Json(response))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/info", listener.local_addr().unwrap());
    let router = Router::new().route("/info", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (Introspector::new(url, vec!["client".into()]).unwrap(), requests)
}

fn known() -> Value {
    // As Google writes it.
    json!({
        "aud": "client", "sub": "1234", "scope": "email", "email": "ada@example.com",
        "email_verified": "true", "exp": at(3600).timestamp().to_string(), "expires_in": "3600",
    })
}

#[tokio::test]
async fn a_valid_opaque_token_is_cached_for_five_seconds() {
    let (introspector, requests) = introspector(StatusCode::OK, known()).await;
    let authenticator = Authenticator::default().with_introspection(introspector);
    for second in [0, 2, 4] {
        let identity = authenticator.identify("ya29.secret", at(second)).await.unwrap();
        assert_eq!(identity.email.as_deref(), Some("ada@example.com"));
    }
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    authenticator.identify("ya29.secret", at(5)).await.unwrap();
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_invalid_opaque_token_is_rejected_and_cached() {
    let other = |name: &str, value: Value| {
        let mut claims = known();
        claims[name] = value;
        claims
    };
    let expired = at(-60).timestamp().to_string();
    for (status, claims, error) in [
        (StatusCode::BAD_REQUEST, json!({}), Error::Malformed("its issuer does not know it")),
        (StatusCode::OK, json!({"active": false}), Error::Malformed("its issuer does not know it")),
        (StatusCode::OK, other("aud", json!("evil")), Error::WrongAudience { expected: "client".into() }),
        (StatusCode::OK, other("exp", json!(expired)), Error::Expired),
        (
            StatusCode::OK,
            json!({"aud": "client"}),
            Error::Malformed("its issuer's response lacks required claims"),
        ),
    ] {
        let (introspector, requests) = introspector(status, claims).await;
        let authenticator = Authenticator::default().with_introspection(introspector);
        for _ in 0..2 {
            assert_eq!(authenticator.identify("ya29.secret", at(0)).await, Err(error.clone()));
        }
        assert_eq!(requests.load(Ordering::SeqCst), 1, "{error}");
    }
}

#[tokio::test]
async fn an_unavailable_issuer_does_not_invalidate_a_token() {
    let (introspector, requests) = introspector(StatusCode::INTERNAL_SERVER_ERROR, json!({})).await;
    let authenticator = Authenticator::default().with_introspection(introspector);
    for _ in 0..2 {
        let error = authenticator.identify("ya29.secret", at(0)).await.unwrap_err();
        assert!(
            matches!(&error, Error::KeysUnavailable(_)) && !error.to_string().contains("secret"),
            "{error}"
        );
    }
    assert_eq!(requests.load(Ordering::SeqCst), 2, "it may be known a moment later");
}

#[tokio::test]
async fn opaque_tokens_are_rejected_without_introspection() {
    let authenticator = Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE)]);
    let refused = authenticator.identify("ya29.secret", at(0)).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
}
