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
async fn each_issuer_is_believed_with_its_own_keys_and_audience() {
    let other = Issuer::generate(OTHER);
    let gate = Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE), trusted(&other, OTHER, "theirs")]);
    let ours = gate.identify(&HOUSE.sign(&claims()), at(0)).await.unwrap();
    assert_eq!((ours.name.as_str(), ours.email.as_deref()), (ACCOUNT, Some(ACCOUNT)));
    let mut said = claims_with("iss", json!(OTHER));
    said["aud"] = json!("theirs");
    said["groups"] = json!(["data"]);
    assert_eq!(gate.identify(&other.sign(&said), at(0)).await.unwrap().groups, ["data"]);
    // Neither audience nor keys are shared.
    assert_eq!(gate.identify(&HOUSE.sign(&said), at(0)).await, Err(Error::UnknownKey));
    said["aud"] = json!(AUDIENCE);
    let wrong = gate.identify(&other.sign(&said), at(0)).await;
    assert_eq!(wrong, Err(Error::WrongAudience { expected: "theirs".into() }));
    let stranger = gate.identify(&HOUSE.sign(&claims_with("iss", json!("https://x"))), at(0)).await;
    assert_eq!(stranger, Err(Error::WrongIssuer { expected: format!("{ISSUER} or {OTHER}") }));
}

#[tokio::test]
async fn an_address_that_the_issuer_does_not_vouch_for_is_no_name() {
    let gate = Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE)]);
    let identity = gate.identify(&HOUSE.sign(&claims_with("email_verified", json!(false))), at(0)).await;
    let identity = identity.unwrap();
    assert_eq!((identity.name.as_str(), identity.email), ("1234", None));
}

/// Someone who knows tokens, and counts how often it is asked.
async fn knowing(status: StatusCode, said: Value) -> (Introspector, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let counter = asked.clone();
    let answer = move |body: String| async move {
        counter.fetch_add(1, Ordering::SeqCst);
        assert!(body.starts_with("access_token=ya29%2Esecret"), "{body}");
        (status, Json(said))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/info", listener.local_addr().unwrap());
    let router = Router::new().route("/info", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (Introspector::new(url, vec!["client".into()]).unwrap(), asked)
}

fn known() -> Value {
    // As Google writes it.
    json!({
        "aud": "client", "sub": "1234", "scope": "email", "email": "ada@example.com",
        "email_verified": "true", "exp": at(3600).timestamp().to_string(), "expires_in": "3600",
    })
}

#[tokio::test]
async fn an_opaque_token_is_asked_about_once_a_minute() {
    let (introspector, asked) = knowing(StatusCode::OK, known()).await;
    let gate = Authenticator::default().with_introspection(introspector);
    for second in [0, 30, 59] {
        let identity = gate.identify("ya29.secret", at(second)).await.unwrap();
        assert_eq!(identity.email.as_deref(), Some("ada@example.com"));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    gate.identify("ya29.secret", at(60)).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_opaque_token_that_is_wrong_is_refused_and_not_asked_about_again_at_once() {
    let other = |name: &str, value: Value| {
        let mut said = known();
        said[name] = value;
        said
    };
    let expired = at(-60).timestamp().to_string();
    for (status, said, error) in [
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
        let (introspector, asked) = knowing(status, said).await;
        let gate = Authenticator::default().with_introspection(introspector);
        for _ in 0..2 {
            assert_eq!(gate.identify("ya29.secret", at(0)).await, Err(error.clone()));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{error}");
    }
}

#[tokio::test]
async fn that_nobody_can_be_asked_says_nothing_about_the_token() {
    let (introspector, asked) = knowing(StatusCode::INTERNAL_SERVER_ERROR, json!({})).await;
    let gate = Authenticator::default().with_introspection(introspector);
    for _ in 0..2 {
        let error = gate.identify("ya29.secret", at(0)).await.unwrap_err();
        assert!(
            matches!(&error, Error::KeysUnavailable(_)) && !error.to_string().contains("secret"),
            "{error}"
        );
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "it may be known a moment later");
}

#[tokio::test]
async fn without_anyone_to_ask_opaque_tokens_are_refused() {
    let gate = Authenticator::new([trusted(&HOUSE, ISSUER, AUDIENCE)]);
    let refused = gate.identify("ya29.secret", at(0)).await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
}
