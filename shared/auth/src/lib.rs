//! Authentication and authorization: tokens and the keys that verify them, roles and grants, and a local issuer.
//!
//! Nothing here reads a clock: callers pass the current time.

mod authenticator;
mod caller;
mod claims;
mod decide;
mod error;
mod grant;
mod introspect;
mod issuer;
mod jwks_endpoint;
mod keys;
mod policy;
mod push;
mod role;
mod seal;
pub mod service_token;
mod sign_in;
mod ttl_cache;
mod verifier;

pub use authenticator::{Authenticator, TrustedIssuer};
pub use caller::{Caller, Denied};
pub use claims::Claims;
pub use decide::{WorkflowScope, may};
pub use error::Error;
pub use grant::{DEFAULT_TENANT, Grant, Pattern, TenantScope};
pub use introspect::{GOOGLE_INTROSPECTION_URL, Introspector};
pub use issuer::Issuer;
pub use keys::{Fetched, Keys, Source};
pub use policy::{Identity, Policy, Principal};
pub use push::PushAuth;
pub use role::{Permission, Role};
pub use seal::{Seal, challenge, random};
pub use sign_in::{GOOGLE_AUTHORIZE_URL, GOOGLE_TOKEN_URL, PendingSignIn, Provider, SignIn};
pub use ttl_cache::TtlCache;
pub use verifier::Verifier;

/// Whether two secrets are equal, in a time that does not reveal where they differ.
pub fn constant_time_eq(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// The `iss` claims of tokens that Google signs.
pub const GOOGLE_ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// The `iss` claim of the tokens in which Identity-Aware Proxy says who has signed in.
pub const IAP_ISSUER: &str = "https://cloud.google.com/iap";

/// The header in which Identity-Aware Proxy sends that token.
pub const IAP_HEADER: &str = "x-goog-iap-jwt-assertion";

/// Where Google publishes the keys it signs tokens with.
pub const GOOGLE_KEYS_URL: &str = "https://www.googleapis.com/oauth2/v3/certs";
