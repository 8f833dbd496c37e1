//! The end of a stream: when the process stops, or the listener loses the permission because a token expired, or a token,
//! grant or session was revoked.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use host::ShutdownNotice;
use read::Reader;
use tokio::time::MissedTickBehavior;

use crate::access::Credentials;
use crate::{Api, Caller};

/// How often a listener's credentials are checked again. Accounts remember what they read for a few seconds more.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// How long a listener may stay: while its credentials are good, and the process runs.
pub(crate) struct Stay {
    credentials: Credentials,
    stopping: ShutdownNotice,
}

impl FromRequestParts<Api> for Stay {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Credentials>().cloned();
        let stopping = parts.extensions.get::<ShutdownNotice>().cloned().unwrap_or_default();
        Ok(Self { credentials: known.unwrap_or_else(|| Credentials::of(&parts.headers)), stopping })
    }
}

impl Stay {
    /// Resolves at its end. `check` reads what the listener follows.
    pub(super) async fn end(self, api: Api, caller: Caller, check: impl AsyncFn(Reader) -> read::Result<()>) {
        tokio::select! {
            () = self.stopping.received() => {}
            () = revoked(api, self.credentials, caller, check) => {}
        }
    }
}

/// Resolves once the credentials are refused, or no longer allow what `check` reads. A database or issuer that does not
/// respond revokes nothing.
async fn revoked(
    api: Api,
    credentials: Credentials,
    caller: Caller,
    check: impl AsyncFn(Reader) -> read::Result<()>,
) {
    // The interval decides nothing, so it needs no clock.
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval.tick().await;
    loop {
        interval.tick().await;
        let problem = match credentials.renew(&api, &caller).await {
            Ok(renewed) => check(api.reader(&renewed)).await.err().map(host::Problem::from),
            Err(problem) => Some(problem),
        };
        if problem.is_some_and(|problem| problem.status().is_client_error()) {
            return;
        }
    }
}
