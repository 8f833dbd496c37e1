use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::{Router, http::header, routing::get};
use chrono::{DateTime, Utc};
use ebbflow_auth::{Error, Fetched, Issuer, Keys, Source, Verifier};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{AUDIENCE, HOUSE, ISSUER, at, claims, claims_with};

/// A source that a test can change and break, and that counts fetches.
#[derive(Clone, Default)]
struct Fake {
    jwks: Arc<Mutex<Option<Value>>>,
    asked: Arc<AtomicUsize>,
}

impl Fake {
    fn publishing(jwks: Value) -> Self {
        let fake = Self::default();
        fake.publish(jwks);
        fake
    }

    fn publish(&self, jwks: Value) {
        *self.jwks.lock().unwrap() = Some(jwks);
    }

    fn fail(&self) {
        *self.jwks.lock().unwrap() = None;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn verifier(&self) -> Verifier {
        Verifier::new([ISSUER], AUDIENCE, Keys::from_source(self.clone()))
    }
}

#[async_trait]
impl Source for Fake {
    async fn fetch(&self) -> Result<Fetched, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let jwks = self.jwks.lock().unwrap().clone().ok_or(Error::KeysUnavailable("down".into()))?;
        Ok(Fetched { jwks, max_age: Duration::from_secs(600) })
    }
}

/// A different token for each `n`, so that none is cached.
fn token(issuer: &Issuer, n: usize) -> String {
    issuer.sign(&claims_with("sub", json!(n.to_string())))
}

async fn verify(verifier: &Verifier, issuer: &Issuer, n: usize, now: DateTime<Utc>) -> Option<Error> {
    verifier.verify(&token(issuer, n), now).await.err()
}

#[tokio::test]
async fn concurrent_callers_on_an_empty_cache_cause_one_fetch() {
    let source = Fake::publishing(HOUSE.jwks());
    let verifier = source.verifier();
    let verdicts = join_all((0..50).map(|n| verify(&verifier, &HOUSE, n, at(0)))).await;
    assert_eq!(verdicts, vec![None; 50]);
    assert_eq!(source.asked(), 1);
}

#[tokio::test]
async fn stale_keys_are_fetched_again() {
    let source = Fake::publishing(HOUSE.jwks());
    let verifier = source.verifier();
    for (n, (second, questions)) in [(0, 1), (599, 1), (600, 2), (1199, 2), (1200, 3)].into_iter().enumerate()
    {
        assert_eq!(verify(&verifier, &HOUSE, n, at(second)).await, None);
        assert_eq!(source.asked(), questions, "at {second}");
    }
}

#[tokio::test]
async fn a_new_key_is_found_while_the_old_set_is_fresh() {
    let (source, next) = (Fake::publishing(HOUSE.jwks()), Issuer::generate(ISSUER));
    let verifier = source.verifier();
    assert_eq!(verify(&verifier, &HOUSE, 0, at(0)).await, None);
    source.publish(json!({ "keys": [HOUSE.jwks()["keys"][0], next.jwks()["keys"][0]] }));
    assert_eq!(verify(&verifier, &next, 1, at(31)).await, None);
    assert_eq!(verify(&verifier, &HOUSE, 2, at(31)).await, None);
    source.publish(next.jwks());
    assert_eq!(verify(&verifier, &HOUSE, 3, at(700)).await, Some(Error::UnknownKey));
}

#[tokio::test]
async fn unknown_key_ids_cannot_flood_the_source() {
    let (source, stranger) = (Fake::publishing(HOUSE.jwks()), Issuer::generate(ISSUER));
    let verifier = source.verifier();
    for second in 0..60 {
        assert_eq!(verify(&verifier, &stranger, 0, at(second)).await, Some(Error::UnknownKey));
    }
    assert_eq!(source.asked(), 2);
}

#[tokio::test]
async fn stale_keys_are_used_while_the_source_is_down() {
    let source = Fake::publishing(HOUSE.jwks());
    let verifier = source.verifier();
    assert_eq!(verify(&verifier, &HOUSE, 0, at(0)).await, None);
    source.fail();
    for n in 1..10 {
        assert_eq!(verify(&verifier, &HOUSE, n, at(1000)).await, None);
    }
    assert_eq!(source.asked(), 2);
    source.publish(json!({ "keys": [] }));
    assert_eq!(verify(&verifier, &HOUSE, 10, at(1100)).await, None);
}

#[tokio::test]
async fn without_any_key_the_caller_may_retry() {
    let source = Fake::default();
    let verifier = source.verifier();
    let verdicts = join_all((0..20).map(|n| verify(&verifier, &HOUSE, n, at(0)))).await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Some(Error::KeysUnavailable(_)))));
    assert_eq!(source.asked(), 1);
    source.publish(HOUSE.jwks());
    assert_eq!(verify(&verifier, &HOUSE, 20, at(1)).await, None);
}

#[tokio::test]
async fn unsupported_keys_are_ignored() {
    let jwks = json!({ "keys": [
        { "kty": "oct", "kid": "secret", "k": "c2VjcmV0" },
        { "kty": "from the future", "kid": "x" },
        "nonsense",
        HOUSE.jwks()["keys"][0],
    ]});
    assert_eq!(verify(&Fake::publishing(jwks).verifier(), &HOUSE, 0, at(0)).await, None);
}

/// Serves the routes on a free port and returns the address.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn keys_are_fetched_over_http_and_cached_as_cache_control_allows() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let answer = move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async {
            ([(header::CACHE_CONTROL, "public, max-age=300, must-revalidate")], HOUSE.jwks().to_string())
        }
    };
    let url = serve(Router::new().route("/certs", get(answer))).await;
    let verifier = Verifier::new([ISSUER], AUDIENCE, Keys::remote(format!("{url}/certs")).unwrap());
    for (second, questions) in [(0, 1), (299, 1), (300, 2)] {
        assert_eq!(verify(&verifier, &HOUSE, questions * 1000 + second as usize, at(second)).await, None);
        assert_eq!(asked.load(Ordering::SeqCst), questions);
    }
}

#[tokio::test]
async fn a_response_that_is_not_a_key_set_is_an_error() {
    let router = Router::new()
        .route("/broken", get(async || (axum::http::StatusCode::BAD_GATEWAY, "")))
        .route("/html", get(async || "<html>"))
        .route("/huge", get(async || " ".repeat(300_000)))
        .route("/empty", get(async || "{}"));
    let url = serve(router).await;
    for path in ["broken", "html", "huge", "empty", "absent"] {
        let verifier = Verifier::new([ISSUER], AUDIENCE, Keys::remote(format!("{url}/{path}")).unwrap());
        let refused = verifier.verify(&HOUSE.sign(&claims()), at(0)).await;
        assert!(matches!(refused, Err(Error::KeysUnavailable(_))), "{path}: {refused:?}");
    }
}
