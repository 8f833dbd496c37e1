//! Access tokens that only their issuer can read: it is asked, and its answer is remembered for a moment.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::recent::Recent;
use crate::verifier::{Fingerprint, fingerprint};
use crate::{Claims, Error};

/// Where Google says what an access token is good for.
pub const GOOGLE_INTROSPECTION_URL: &str = "https://oauth2.googleapis.com/tokeninfo";

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BODY: usize = 64 * 1024;

/// A good answer is believed for so long: then a token that was taken back is found out.
const GOOD_FOR: TimeDelta = TimeDelta::seconds(60);

/// So is a bad one, for less: nobody gets to make us ask with every request.
const BAD_FOR: TimeDelta = TimeDelta::seconds(10);

const MAX_REMEMBERED: usize = 1024;

/// No more questions are under way at a time.
const MAX_QUESTIONS: usize = 8;

/// Asks the issuer of opaque tokens about them.
pub struct Introspector {
    client: Client,
    url: String,
    audiences: Vec<String>,
    known: Recent<Fingerprint, Result<Claims, Error>>,
    questions: Semaphore,
}

impl Introspector {
    /// Asks at that address, and believes what was issued for one of these audiences.
    pub fn new(url: impl Into<String>, audiences: Vec<String>) -> Result<Self, Error> {
        let client = Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self {
            client: client.map_err(|error| Error::KeysUnavailable(error.to_string()))?,
            url: url.into(),
            audiences,
            known: Recent::new(MAX_REMEMBERED),
            questions: Semaphore::new(MAX_QUESTIONS),
        })
    }

    /// What the issuer says of a token, if it can be believed at `now`.
    pub(crate) async fn look_up(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        let fingerprint = fingerprint(token)?;
        if let Some(known) = self.known.get(&fingerprint, now) {
            return known.and_then(|claims| claims.check_time(now).map(|()| claims));
        }
        let Ok(_turn) = self.questions.try_acquire() else {
            return Err(Error::KeysUnavailable("too many tokens are being introspected".into()));
        };
        let found = self.ask(token, now).await;
        match &found {
            Ok(_) => self.known.put(fingerprint, found.clone(), now, GOOD_FOR),
            // That the issuer is away says nothing about the token.
            Err(Error::KeysUnavailable(_)) => {}
            Err(_) => self.known.put(fingerprint, found.clone(), now, BAD_FOR),
        }
        found
    }

    async fn ask(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Error> {
        // Google reads the first field, RFC 7662 the second. In the body, since addresses end up in logs.
        let body = format!("access_token={0}&token={0}", encode(token));
        let request = self.client.post(&self.url).header("content-type", "application/x-www-form-urlencoded");
        let answer =
            request.body(body).send().await.map_err(|error| away(&error.without_url().to_string()))?;
        let status = answer.status();
        if status.is_server_error() || status.as_u16() == 429 {
            return Err(away(&format!("it returned {status}")));
        }
        if !status.is_success() {
            return Err(Error::Malformed("its issuer does not know it"));
        }
        let claims = read(&body_of(answer).await?)?;
        if !claims.aud.iter().any(|audience| self.audiences.contains(audience)) {
            return Err(Error::WrongAudience { expected: self.audiences.join(" or ") });
        }
        claims.check_time(now)?;
        Ok(claims)
    }
}

fn away(why: &str) -> Error {
    Error::KeysUnavailable(format!("token introspection failed: {why}"))
}

async fn body_of(mut answer: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| away(&error.without_url().to_string()))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            return Err(away("the response is too long"));
        }
    }
    Ok(body)
}

/// Reads an answer: Google writes numbers and truths as texts, others do not.
fn read(body: &[u8]) -> Result<Claims, Error> {
    let mut said: Value = serde_json::from_slice(body).map_err(|_| away("the response is not JSON"))?;
    let Some(fields) = said.as_object_mut() else { return Err(away("the response is not an object")) };
    if fields.get("active") == Some(&Value::Bool(false)) {
        return Err(Error::Malformed("its issuer does not know it"));
    }
    for field in ["exp", "nbf"] {
        if let Some(number) =
            fields.get(field).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok())
        {
            fields.insert(field.into(), number.into());
        }
    }
    if let Some(text) = fields.get("email_verified").and_then(Value::as_str) {
        let verified = text == "true";
        fields.insert("email_verified".into(), verified.into());
    }
    for field in ["iss", "sub"] {
        fields.entry(field).or_insert_with(|| Value::String(String::new()));
    }
    serde_json::from_value(said).map_err(|_| Error::Malformed("its issuer's response lacks required claims"))
}

/// Percent-encodes everything but letters and digits.
fn encode(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
