//! Who is calling and what they may do: tokens, the keys they are checked with, roles, and a local issuer.
//!
//! Nothing here reads a clock: whoever asks says what time it is.

mod caller;
mod claims;
mod decide;
mod error;
mod gate;
mod grant;
mod introspect;
mod issuer;
mod keys;
mod policy;
mod push;
mod recent;
mod remote;
mod role;
mod seal;
pub mod service_token;
mod sign_in;
mod verifier;

pub use caller::{Caller, Denied};
pub use claims::Claims;
pub use decide::{About, may};
pub use error::Error;
pub use gate::{Gate, Trusted};
pub use grant::{DEFAULT_TENANT, Grant, Pattern, Reach};
pub use introspect::{GOOGLE_INTROSPECTION_URL, Introspector};
pub use issuer::Issuer;
pub use keys::{Fetched, Keys, Source};
pub use policy::{Identity, Policy, Who};
pub use push::PushAuth;
pub use recent::Recent;
pub use role::{Permission, Role};
pub use seal::{Seal, challenge, random};
pub use sign_in::{Attempt, GOOGLE_AUTHORIZE_URL, GOOGLE_TOKEN_URL, Provider, SignIn};
pub use verifier::Verifier;

/// Whether two secrets are the same, in a time that tells nothing of where they differ.
pub fn same(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// How Google names itself in the tokens it signs.
pub const GOOGLE_ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// Where Google publishes the keys it signs tokens with.
pub const GOOGLE_KEYS_URL: &str = "https://www.googleapis.com/oauth2/v3/certs";
