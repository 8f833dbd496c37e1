//! The credentials of a request, which long responses check again.

use std::sync::Arc;

use axum::http::{HeaderMap, Request};
use host::Problem;

use super::forbidden;
use crate::{Api, Caller};

/// The credentials of a request: its headers, or none for the person at this machine.
#[derive(Clone, Debug)]
pub struct Credentials(Option<Arc<HeaderMap>>);

impl Credentials {
    /// The credentials in the headers of a request.
    pub fn of(headers: &HeaderMap) -> Self {
        Self(Some(Arc::new(headers.clone())))
    }

    /// Those of the person at this machine, who needs none.
    pub fn local() -> Self {
        Self(None)
    }

    /// The caller with the grants that they have now; refused if the credentials were revoked or have expired.
    pub(crate) async fn renew(&self, api: &Api, caller: &Caller) -> Result<Caller, Problem> {
        let Some(headers) = &self.0 else { return Ok(caller.clone()) };
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers = HeaderMap::clone(headers);
        let renewed = api.access.caller(api, &parts).await?;
        if renewed.tenant != caller.tenant {
            return Err(forbidden("the caller acts in another tenant now"));
        }
        Ok(renewed)
    }
}
