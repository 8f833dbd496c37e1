use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ebbflow_auth::{Claims, Error, Issuer, Keys, Verifier};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::{AUDIENCE, HOUSE, ISSUER, at, claims, claims_with, claims_without};

fn verifier() -> Verifier {
    HOUSE.verifier(AUDIENCE)
}

async fn verify(token: &str) -> Result<Claims, Error> {
    verifier().verify(token, at(60)).await
}

async fn verify_claims(claims: &Value) -> Result<Claims, Error> {
    verify(&HOUSE.sign(claims)).await
}

fn kid() -> String {
    HOUSE.jwks()["keys"][0]["kid"].as_str().unwrap().to_owned()
}

fn encode(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

#[tokio::test]
async fn a_valid_token_is_accepted() {
    let claims = verify_claims(&claims()).await.unwrap();
    assert_eq!((claims.iss.as_str(), claims.sub.as_str()), (ISSUER, "1234"));
    assert_eq!(claims.aud, [AUDIENCE]);
    assert_eq!(claims.extra["iat"], at(0).timestamp());
}

#[tokio::test]
async fn one_of_several_audiences_suffices() {
    assert!(verify_claims(&claims_with("aud", json!(["other", AUDIENCE]))).await.is_ok());
}

#[tokio::test]
async fn another_audience_or_issuer_is_rejected_with_the_expected_one() {
    for aud in [json!("https://other.test"), json!(format!("{AUDIENCE}/")), json!([])] {
        let refused = verify_claims(&claims_with("aud", aud)).await;
        assert_eq!(refused, Err(Error::WrongAudience { expected: AUDIENCE.into() }));
    }
    let refused = verify_claims(&claims_with("iss", json!("https://evil.test"))).await;
    assert_eq!(refused, Err(Error::WrongIssuer { expected: ISSUER.into() }));
}

#[tokio::test]
async fn a_token_is_valid_between_its_times_with_ten_seconds_of_leeway() {
    let (verifier, token) = (verifier(), HOUSE.sign(&claims_with("nbf", json!(at(100).timestamp()))));
    let judge = async |second| verifier.verify(&token, at(second)).await.err();
    assert_eq!(judge(89).await, Some(Error::Premature));
    assert_eq!(judge(90).await, None);
    assert_eq!(judge(3609).await, None);
    // By now the token is a remembered one; its time is looked at all the same.
    assert_eq!(judge(3610).await, Some(Error::Expired));
    assert_eq!(judge(89).await, Some(Error::Premature));
}

#[tokio::test]
async fn a_token_without_a_required_claim_is_malformed() {
    for name in ["iss", "sub", "aud", "exp"] {
        assert!(matches!(verify_claims(&claims_without(name)).await, Err(Error::Malformed(_))), "{name}");
    }
    for exp in [json!("soon"), json!(i64::MAX), json!(null)] {
        assert!(matches!(verify_claims(&claims_with("exp", exp)).await, Err(Error::Malformed(_))));
    }
}

#[tokio::test]
async fn another_issuers_signature_with_our_key_id_is_invalid() {
    let stranger = Issuer::generate(ISSUER);
    assert_eq!(verify(&stranger.sign(&claims())).await, Err(Error::UnknownKey));

    let (theirs, ours) = (stranger.sign(&claims()), HOUSE.sign(&claims()));
    let header = ours.split('.').next().unwrap();
    let rest = theirs.split_once('.').unwrap().1;
    assert_eq!(verify(&format!("{header}.{rest}")).await, Err(Error::BadSignature));
}

#[tokio::test]
async fn a_changed_payload_is_a_bad_signature() {
    let token = HOUSE.sign(&claims());
    let parts: Vec<_> = token.split('.').collect();
    let forged = encode(&claims_with("email", json!("mallory@evil.test")));
    assert_eq!(verify(&format!("{}.{forged}.{}", parts[0], parts[2])).await, Err(Error::BadSignature));
    assert_eq!(
        verify(&format!("{}.{}.SIGNATURE_REMOVED_BY_GOOGLE", parts[0], parts[1])).await,
        Err(Error::BadSignature)
    );
}

#[tokio::test]
async fn unsigned_tokens_are_rejected() {
    for alg in ["none", "None", "NONE"] {
        let header = encode(&json!({ "alg": alg, "kid": kid(), "typ": "JWT" }));
        let token = format!("{header}.{}.", encode(&claims()));
        assert!(matches!(verify(&token).await, Err(Error::Malformed(_))), "{alg}");
    }
}

#[tokio::test]
async fn the_public_key_does_not_serve_as_a_shared_secret() {
    let modulus = HOUSE.jwks()["keys"][0]["n"].as_str().unwrap().to_owned();
    let header = Header { kid: Some(kid()), ..Header::new(Algorithm::HS256) };
    let token =
        jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(modulus.as_bytes())).unwrap();
    assert!(matches!(verify(&token).await, Err(Error::Malformed(_))));
}

#[tokio::test]
async fn a_token_that_does_not_name_its_key_is_malformed() {
    let header = encode(&json!({ "alg": "RS256" }));
    assert_eq!(
        verify(&format!("{header}.{}.c2ln", encode(&claims()))).await,
        Err(Error::Malformed("its header has no `kid`"))
    );
}

#[tokio::test]
async fn other_texts_are_malformed_tokens() {
    let long = "x".repeat(20_000);
    for text in ["", ".", "..", "...", "a.b.c", "opaque", "e30.e30.e30", long.as_str()] {
        assert!(matches!(verify(text).await, Err(Error::Malformed(_))), "{text}");
    }
}

#[tokio::test]
async fn elliptic_curve_tokens_are_accepted() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let point = &pair.public_key().as_ref()[1..];
    let [x, y] = [&point[..32], &point[32..]].map(|half| BASE64_URL_SAFE_NO_PAD.encode(half));
    let jwks = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "ec", "x": x, "y": y }] });
    let key = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
    let header = Header { kid: Some("ec".into()), ..Header::new(Algorithm::ES256) };
    let token = jsonwebtoken::encode(&header, &claims(), &key).unwrap();

    let verifier = Verifier::new([ISSUER], AUDIENCE, Keys::fixed(&jwks));
    assert!(verifier.verify(&token, at(0)).await.is_ok());
}

#[tokio::test]
async fn errors_do_not_contain_the_token() {
    let token = HOUSE.sign(&claims_with("aud", json!("https://other.test")));
    let error = verify(&token).await.unwrap_err().to_string();
    assert!(token.split('.').all(|part| !error.contains(part)));
}

#[tokio::test]
async fn the_cache_is_bounded_and_correct() {
    let verifier = verifier();
    for n in 0..1100 {
        let token = HOUSE.sign(&claims_with("sub", json!(n.to_string())));
        assert_eq!(verifier.verify(&token, at(0)).await.unwrap().sub, n.to_string());
    }
}
