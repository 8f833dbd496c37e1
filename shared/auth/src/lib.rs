//! Who is calling: signed tokens, the keys they are checked with, and a local issuer.
//!
//! Nothing here reads a clock: whoever asks says what time it is.

mod accounts;
mod claims;
mod error;
mod issuer;
mod keys;
mod push;
mod remote;
mod verifier;

pub use accounts::Accounts;
pub use claims::Claims;
pub use error::Error;
pub use issuer::Issuer;
pub use keys::{Fetched, Keys, Source};
pub use push::PushAuth;
pub use verifier::Verifier;

/// Whether two secrets are the same, in a time that tells nothing of where they differ.
pub fn same(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// How Google names itself in the tokens it signs.
pub const GOOGLE_ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// Where Google publishes the keys it signs tokens with.
pub const GOOGLE_KEYS_URL: &str = "https://www.googleapis.com/oauth2/v3/certs";
