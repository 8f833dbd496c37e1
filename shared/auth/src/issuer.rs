//! A local issuer of tokens, for development and tests, which have no Google account.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::prelude::{BASE64_STANDARD, Engine};
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::jwk::{Jwk, PublicKeyUse, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::{Error, Keys, Verifier};

/// Signs tokens with its own RSA key.
pub struct Issuer {
    url: String,
    key: EncodingKey,
    header: Header,
    jwk: Jwk,
}

impl Issuer {
    /// An issuer with a new key that is kept in memory only.
    pub fn generate(url: impl Into<String>) -> Self {
        Self::from_pem(url.into(), &generate_pem()).expect("a generated key is valid")
    }

    /// The issuer whose key is in the file. If the file does not exist, creates it with a new key, readable only by its owner.
    pub fn load_or_create(path: &Path, url: impl Into<String>) -> Result<Self, Error> {
        let fail = |reason: String| Error::KeyFile { path: path.display().to_string(), reason };
        let pem = read_or_create(path).map_err(|error| fail(error.to_string()))?;
        Self::from_pem(url.into(), &pem).map_err(|error| {
            fail(format!("not an RSA key in PEM ({error}); delete the file to get a new key"))
        })
    }

    /// The `iss` claim of its tokens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its public key as a JSON Web Key Set.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [self.jwk] })
    }

    /// Accepts its tokens for an audience.
    pub fn verifier(&self, audience: &str) -> Verifier {
        Verifier::new([self.url()], audience, Keys::fixed(&self.jwks()))
    }

    /// Signs a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        jsonwebtoken::encode(&self.header, claims, &self.key).expect("the key is RSA and the claims are JSON")
    }

    /// A token as Pub/Sub sends it with a push; it expires after an hour.
    pub fn push_token(&self, service_account: &str, audience: &str, now: DateTime<Utc>) -> String {
        self.sign(&json!({
            "iss": self.url,
            "aud": audience,
            "azp": service_account,
            "sub": service_account,
            "email": service_account,
            "email_verified": true,
            "iat": now.timestamp(),
            "exp": (now + TimeDelta::hours(1)).timestamp(),
        }))
    }

    fn from_pem(url: String, pem: &str) -> jsonwebtoken::errors::Result<Self> {
        let key = EncodingKey::from_rsa_pem(pem.as_bytes())?;
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::RS256)?;
        let kid = jwk.thumbprint(ThumbprintHash::SHA256)?;
        jwk.common.key_id = Some(kid.clone());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        let header = Header { kid: Some(kid), ..Header::new(Algorithm::RS256) };
        Ok(Self { url, key, header, jwk })
    }
}

fn generate_pem() -> String {
    let key = KeyPair::generate(KeySize::Rsa2048).expect("generating a key needs only memory and randomness");
    let der: Pkcs8V1Der = key.as_der().expect("a generated key can be encoded");
    let text = BASE64_STANDARD.encode(der.as_ref());
    let lines = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).expect("base64 is ASCII"));
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        lines.collect::<Vec<_>>().join("\n")
    )
}

fn read_or_create(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path)?,
        other => return other,
    }
    fs::read_to_string(path)
}

/// Writes a temporary file and renames it: a crash leaves no partial key, and of two processes that start at the same time
/// one wins and both use its key.
fn create(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?; // mode 0600
    file.write_all(generate_pem().as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(lost) if lost.error.kind() != io::ErrorKind::AlreadyExists => Err(lost.error),
        _ => Ok(()),
    }
}
