//! Replaces secrets by `***` in everything that is stored or shown.
//!
//! It recognizes a secret as it is, percent-encoded, escaped as in JSON, in base64 and in hexadecimal. It is a safeguard
//! against accidents: a program that wants to reveal a secret can always find another encoding.

use std::ops::Range;

use model::Failure;
use serde_json::{Map, Value};

use super::MIN_REDACTED_LENGTH;
use super::encoded::{Base64, Hex};
use super::view::View;

/// A byte takes three characters percent-encoded, and six as `\u0041`.
const MAX_ENCODED_BYTES: usize = 6;

/// Replaces secrets by `***`.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    base64: Base64,
    hex: Hex,
}

impl Redactor {
    /// Redacts these secrets, which an attempt uses.
    pub fn of(secrets: &Map<String, Value>) -> Self {
        Self::default().and(secrets.values().filter_map(Value::as_str).map(str::to_owned))
    }

    /// Redacts these secrets, too.
    pub fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        for secret in secrets {
            if secret.is_empty() || self.secrets.contains(&secret) {
                continue;
            }
            if secret.len() >= MIN_REDACTED_LENGTH {
                self.base64.add_secret(secret.as_bytes());
                self.hex.add_secret(secret.as_bytes());
            }
            // As forms encode it.
            let spaced = secret.contains(' ').then(|| secret.replace(' ', "+"));
            self.secrets.extend(spaced.into_iter().chain([secret]));
        }
    }

    /// The same redactor, for these secrets, too.
    pub fn and(mut self, secrets: impl IntoIterator<Item = String>) -> Self {
        self.add(secrets);
        self
    }

    /// The length of the longest text to redact, in bytes.
    pub fn longest(&self) -> usize {
        self.secrets.iter().map(String::len).max().unwrap_or_default() * MAX_ENCODED_BYTES
    }

    /// Replaces every known secret in a text.
    pub fn text(&self, text: &str) -> String {
        if self.secrets.is_empty() {
            return text.to_owned();
        }
        let mut found = Vec::new();
        for view in View::all(text) {
            found.extend(self.secrets.iter().flat_map(|secret| view.find(secret.as_bytes())));
            let unwrapped = view.without_whitespace();
            found.extend(self.base64.find(&unwrapped, unwrapped.bytes()));
            found.extend(self.hex.find(&unwrapped, &unwrapped.bytes().to_ascii_lowercase()));
        }
        replace(text, found)
    }

    /// Redacts all texts, field names and numbers in a value.
    pub fn value(&self, value: Value) -> Value {
        match value {
            _ if self.secrets.is_empty() => value,
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.text(&name), self.value(value))).collect()
            }
            Value::Number(number) if self.text(&number.to_string()) != number.to_string() => "***".into(),
            other => other,
        }
    }

    /// Redacts the message of a failure.
    pub fn failure(&self, failure: Failure) -> Failure {
        Failure { message: self.text(&failure.message), ..failure }
    }
}

/// The text with `***` in place of each of these parts. Parts that overlap become one.
fn replace(text: &str, mut parts: Vec<Range<usize>>) -> String {
    parts.sort_by_key(|part| (part.start, part.end));
    let (mut redacted, mut at) = (String::with_capacity(text.len()), 0);
    for part in parts {
        if part.start >= at {
            redacted.push_str(&text[at..part.start]);
            redacted.push_str("***");
        }
        at = at.max(part.end);
    }
    redacted.push_str(&text[at..]);
    redacted
}
