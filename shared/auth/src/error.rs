//! Why a caller is not let in, in words that help an honest one and never repeat the token.

/// What can be wrong with a token, or with checking it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// There is no bearer token at all.
    #[error("missing token: send `Authorization: Bearer <token>`")]
    Missing,
    /// It is no token that could ever be accepted.
    #[error("malformed token: {0}")]
    Malformed(&'static str),
    /// Its time is over.
    #[error("the token has expired; request a new one")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet; check the issuer's clock")]
    Premature,
    /// It comes from someone who is not trusted here.
    #[error("the token's issuer is not trusted; expected {expected}")]
    WrongIssuer {
        /// Who is trusted.
        expected: String,
    },
    /// It was issued for another service.
    #[error("the token has the wrong audience; expected `{expected}`")]
    WrongAudience {
        /// What it should have been issued for.
        expected: String,
    },
    /// Nobody knows the key that it claims to be signed with.
    #[error("the token is signed with a key its issuer does not publish")]
    UnknownKey,
    /// The signature is not that of the key.
    #[error("the token's signature is invalid")]
    BadSignature,
    /// It is genuine, but of an account that may not do this.
    #[error("the token's account may not push here, or its email is not verified")]
    WrongAccount,
    /// The keys could not be had; the same token may be good later.
    #[error("cannot fetch the keys to verify tokens: {0}")]
    KeysUnavailable(String),
    /// The local issuer's own key cannot be used.
    #[error("signing key `{path}`: {reason}")]
    KeyFile {
        /// Where the key is kept.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}
