//! Authentication errors. Messages explain the problem and never contain the token.

/// Why a token is rejected, or cannot be checked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The request has no bearer token.
    #[error("missing token: send `Authorization: Bearer <token>`")]
    Missing,
    /// It is not a token, or one that is never accepted.
    #[error("malformed token: {0}")]
    Malformed(&'static str),
    /// The token has expired.
    #[error("the token has expired; request a new one")]
    Expired,
    /// It is not valid yet.
    #[error("the token is not valid yet; check the issuer's clock")]
    Premature,
    /// Its issuer is not trusted here.
    #[error("the token's issuer is not trusted; expected {expected}")]
    WrongIssuer {
        /// The issuers that are trusted.
        expected: String,
    },
    /// It was issued for another service.
    #[error("the token has the wrong audience; expected `{expected}`")]
    WrongAudience {
        /// The audience that is required.
        expected: String,
    },
    /// The issuer does not publish the key that its header names.
    #[error("the token is signed with a key its issuer does not publish")]
    UnknownKey,
    /// The signature does not match the key.
    #[error("the token's signature is invalid")]
    BadSignature,
    /// It is valid, but its account may not push.
    #[error("the token's account may not push here, or its email is not verified")]
    WrongAccount,
    /// The keys cannot be fetched; the same token may be accepted later.
    #[error("cannot fetch the keys to verify tokens: {0}")]
    KeysUnavailable(String),
    /// The local issuer's own key cannot be used.
    #[error("signing key `{path}`: {reason}")]
    KeyFile {
        /// The path of the key file.
        path: String,
        /// Why it cannot be used.
        reason: String,
    },
}
