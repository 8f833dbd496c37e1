//! Identity-Aware Proxy says who has signed in.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ebbflow_auth::{Authenticator, Error, IAP_ISSUER, Identity, Keys, Verifier};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::{AUDIENCE, HOUSE, ISSUER, at, claims, claims_with, claims_without};

const CONSOLE: &str = "/projects/7/locations/europe-west1/services/ebbflow-console";

/// The proxy's key, and an authenticator that trusts the proxy and another issuer.
struct Proxy {
    key: EncodingKey,
    gate: Authenticator,
}

impl Proxy {
    fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let [x, y] = [&point[..32], &point[32..]].map(|half| BASE64_URL_SAFE_NO_PAD.encode(half));
        let jwks = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "ec", "x": x, "y": y }] });
        let proxy = Verifier::new([IAP_ISSUER], CONSOLE, Keys::fixed(&jwks));
        let house = HOUSE.verifier(AUDIENCE);
        let key = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
        Self { key, gate: Authenticator::new([house.into(), proxy.into()]) }
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some("ec".into()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }

    async fn identify(&self, changed: (&str, Value), second: i64) -> Result<Identity, Error> {
        let mut said = assertion();
        said[changed.0] = changed.1;
        self.gate.identify_by_proxy(&self.sign(&said), at(second)).await
    }
}

/// What the proxy says: it does not repeat that the address is verified.
fn assertion() -> Value {
    let mut said = claims_without("email_verified");
    said["iss"] = json!(IAP_ISSUER);
    said["aud"] = json!(CONSOLE);
    said["sub"] = json!("accounts.google.com:1234");
    said["email"] = json!("ada@example.com");
    said
}

#[tokio::test]
async fn a_person_whom_the_proxy_signed_in_is_known_by_address() {
    let identity = Proxy::new().identify(("hd", json!("example.com")), 0).await.unwrap();
    assert_eq!((&*identity.name, identity.email.as_deref()), ("ada@example.com", Some("ada@example.com")));
    assert_eq!(identity.principals(), ["ada@example.com", "@example.com"]);
}

#[tokio::test]
async fn an_assertion_for_another_service_by_another_issuer_or_of_yesterday_is_rejected() {
    let proxy = Proxy::new();
    let audience = proxy.identify(("aud", json!(AUDIENCE)), 0).await;
    assert_eq!(audience, Err(Error::WrongAudience { expected: CONSOLE.into() }));
    let issuer = proxy.identify(("iss", json!(ISSUER)), 0).await;
    assert_eq!(issuer, Err(Error::WrongIssuer { expected: IAP_ISSUER.into() }));
    assert_eq!(proxy.identify(("hd", json!("example.com")), 86_400).await, Err(Error::Expired));
    // A token of another trusted issuer is no assertion.
    let token = HOUSE.sign(&claims());
    assert_eq!(proxy.gate.identify_by_proxy(&token, at(0)).await, Err(Error::UnknownKey));
    assert!(proxy.gate.identify(&token, at(0)).await.is_ok());
}

#[tokio::test]
async fn only_the_proxy_is_trusted_with_addresses_that_it_does_not_call_verified() {
    let proxy = Proxy::new();
    let identity = proxy.gate.identify(&HOUSE.sign(&claims_without("email_verified")), at(0)).await.unwrap();
    assert_eq!((&*identity.name, identity.email), ("issuer.test#1234", None));
    let forged = HOUSE.sign(&claims_with("iss", json!(IAP_ISSUER)));
    assert_eq!(proxy.gate.identify(&forged, at(0)).await, Err(Error::UnknownKey));
}

#[tokio::test]
async fn without_a_trusted_proxy_there_are_no_assertions() {
    let house = HOUSE.verifier(AUDIENCE);
    let gate = Authenticator::new([house.into()]);
    assert!(!gate.trusts_proxy());
    assert_eq!(gate.identify_by_proxy(&HOUSE.sign(&claims()), at(0)).await, Err(Error::Missing));
}
