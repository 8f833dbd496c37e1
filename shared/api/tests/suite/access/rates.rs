//! Who asks too often.

use auth::{Gate, Keys, Policy, Verifier};
use axum::http::{Method, StatusCode, header};
use ebbflow_api::Access;
use ebbflow_api::access::Rates;
use serde_json::json;

use crate::world::{Answer, ISSUER, World, now, sign};

fn world(rates: Rates) -> World {
    let verifier = Verifier::new([ISSUER.url()], "api", Keys::fixed(&ISSUER.jwks()));
    let policy = Policy::read("ada@example.com=viewer, bob@example.com=viewer, cid@example.com=viewer:acme");
    World::with_access(Access::new(Gate::new([verifier.into()]), policy.unwrap()).with_rates(rates))
}

async fn ask(world: &World, who: &str) -> Answer {
    let token = sign(&json!({
        "iss": ISSUER.url(), "sub": who, "aud": "api", "email": format!("{who}@example.com"),
        "email_verified": true, "exp": now().timestamp() + 60,
    }));
    world.send(Method::GET, "/runs", &[("authorization", &format!("Bearer {token}"))], "").await
}

#[tokio::test]
async fn a_caller_who_asks_too_often_is_told_when_to_come_again_and_others_are_not_held_up() {
    let world = world(Rates { caller: Some(2), tenant: None });
    for _ in 0..4 {
        assert_eq!(ask(&world, "ada").await.status, StatusCode::OK);
    }
    let refused = ask(&world, "ada").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.body["error_code"], "too_many_requests");
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert!(refused.body["message"].as_str().unwrap().contains("2 times a second"), "{}", refused.body);
    assert_eq!(ask(&world, "bob").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_tenant_has_a_rate_as_a_whole() {
    let world = world(Rates { caller: None, tenant: Some(2) });
    for who in ["ada", "bob", "ada", "bob"] {
        assert_eq!(ask(&world, who).await.status, StatusCode::OK);
    }
    assert_eq!(ask(&world, "ada").await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask(&world, "bob").await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask(&world, "cid").await.status, StatusCode::OK, "another tenant is not held up");
}
