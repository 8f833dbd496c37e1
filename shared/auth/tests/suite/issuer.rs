use std::fs;
use std::os::unix::fs::PermissionsExt;

use ebbflow_auth::{Error, Issuer};

use crate::{ACCOUNT, AUDIENCE, HOUSE, ISSUER, at};

#[tokio::test]
async fn a_push_token_verifies_with_the_published_keys() {
    let verifier = HOUSE.verifier(AUDIENCE);
    let claims = verifier.verify(&HOUSE.push_token(ACCOUNT, AUDIENCE, at(0)), at(3599)).await.unwrap();
    assert_eq!((claims.email.as_deref(), claims.email_verified), (Some(ACCOUNT), true));
    assert_eq!(claims.exp, at(3600));
    assert_eq!(claims.extra["azp"], ACCOUNT);
}

#[test]
fn the_key_survives_a_restart_and_only_its_owner_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys").join("issuer.pem");
    let first = Issuer::load_or_create(&path, ISSUER).unwrap();
    let second = Issuer::load_or_create(&path, ISSUER).unwrap();
    assert_eq!(first.jwks(), second.jwks());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn issuers_that_start_at_the_same_time_share_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issuer.pem");
    let start = || Issuer::load_or_create(&path, ISSUER).unwrap().jwks();
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(start), scope.spawn(start));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!(one, two);
}

#[test]
fn an_invalid_key_file_is_reported_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issuer.pem");
    fs::write(&path, "not a key").unwrap();
    let Err(error) = Issuer::load_or_create(&path, ISSUER) else { panic!("it took the file for a key") };
    assert!(matches!(error, Error::KeyFile { .. }));
    assert!(error.to_string().contains("issuer.pem"));
}

#[test]
fn the_published_key_set_has_no_private_parts() {
    let jwks = HOUSE.jwks();
    let names: Vec<_> = jwks["keys"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["alg", "e", "kid", "kty", "n", "use"]);
}
