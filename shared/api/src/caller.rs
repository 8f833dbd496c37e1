//! The caller of a request.

use auth::Caller;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use host::Problem;

use crate::Api;

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    /// The caller that the guard let in. Without a guard, the one the request names; the handler then checks what they
    /// may do.
    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        match parts.extensions.get::<Self>() {
            Some(caller) => Ok(caller.clone()),
            None => api.access.caller(api, parts).await,
        }
    }
}
