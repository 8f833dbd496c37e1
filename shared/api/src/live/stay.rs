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
    /// Resolves at its end. `check` says whether a caller may still follow what the listener follows. It cannot read the database,
    /// and accounts remember the caller: however many listen, that costs a statement for each caller every few seconds.
    pub(crate) async fn end(self, api: Api, caller: Caller, check: impl Fn(&Reader) -> read::Result<()>) {
        tokio::select! {
            () = self.stopping.received() => {}
            () = revoked(api, self.credentials, caller, check) => {}
        }
    }
}

/// Resolves once the credentials are refused, or no longer allow what is followed. A database or issuer that does not respond
/// revokes nothing.
async fn revoked(
    api: Api,
    credentials: Credentials,
    caller: Caller,
    check: impl Fn(&Reader) -> read::Result<()>,
) {
    // The interval decides nothing, so it needs no clock.
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval.tick().await;
    loop {
        interval.tick().await;
        let problem = match credentials.renew(&api, &caller).await {
            Ok(renewed) => check(&api.reader(&renewed)).err().map(host::Problem::from),
            Err(problem) => Some(problem),
        };
        if problem.is_some_and(|problem| problem.status().is_client_error()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_lost_its_permission_is_noticed_within_seconds() {
        assert!(CHECK_INTERVAL <= Duration::from_secs(5), "a revocation is remembered for five seconds more");
    }
}
