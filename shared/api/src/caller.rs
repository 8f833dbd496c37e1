//! Who asks: the bearer of a token that can be believed.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use model::TenantId;
use service::Problem;

use crate::Api;

/// Who asks, and for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Whose work they see and steer.
    pub tenant: TenantId,
    /// Their name, as it stands in events.
    pub name: String,
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        // The console has asked who reads a page before it asks here for them. Nothing that comes over the network can
        // put anything among the extensions.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let token = bearer(parts).ok_or(auth::Error::Missing)?;
        let claims = api.auth.verify(token, api.app.now()).await?;
        api.accounts.admit(&claims)?;
        // An address that the issuer does not vouch for may be anyone's.
        let email = claims.email.filter(|_| claims.email_verified);
        Ok(Self { tenant: TenantId::DEFAULT, name: email.unwrap_or(claims.sub) })
    }
}

fn bearer(parts: &Parts) -> Option<&str> {
    let header = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
