//! Logs in to the database with the function's service account: the password is an access token, which expires after an
//! hour and is needed only to open a connection.

use std::time::Duration;

use async_trait::async_trait;
use google_cloud_auth::credentials::{AccessTokenCredentials, Builder};
use store::Postgres;
use tracing::warn;

/// The only scope of the tokens for the database.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/sqlservice.login";

/// How often to check for a new token. An instance without CPU between requests checks at the next request.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A source of passwords.
#[async_trait]
pub(crate) trait Passwords: Send + Sync {
    /// The current password, or why there is none.
    async fn current(&self) -> Result<String, String>;
}

/// Access tokens of this process's service account.
pub(crate) struct AccessTokens(AccessTokenCredentials);

impl AccessTokens {
    /// Tokens with one scope. They are renewed before they expire.
    pub(crate) fn of_this_account(scope: &str) -> Result<Self, String> {
        let credentials = Builder::default().with_scopes([scope]).build_access_token_credentials();
        credentials.map(Self).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Passwords for AccessTokens {
    async fn current(&self) -> Result<String, String> {
        self.0.access_token().await.map(|token| token.token).map_err(|error| error.to_string())
    }
}

/// Connects, and switches to each new password.
pub(crate) async fn connect(
    passwords: impl Passwords + 'static,
    url: &str,
    connections: u32,
) -> Result<Postgres, crate::app::StartError> {
    let mut password = passwords.current().await.map_err(crate::app::StartError::Login)?;
    let store = Postgres::connect_by(url, &password, connections).await?;
    let using = store.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        loop {
            ticks.tick().await;
            if let Some(renewed) = renewed(&passwords, &password).await {
                using.use_password(&renewed);
                password = renewed;
            }
        }
    });
    Ok(store)
}

/// A new password, if there is one.
async fn renewed(passwords: &dyn Passwords, known: &str) -> Option<String> {
    match passwords.current().await {
        Ok(password) => Some(password).filter(|password| password != known),
        Err(error) => {
            warn!("Cannot renew the token for the database yet: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Result<&'static str, &'static str>);

    #[async_trait]
    impl Passwords for Given {
        async fn current(&self) -> Result<String, String> {
            self.0.map(str::to_owned).map_err(str::to_owned)
        }
    }

    #[tokio::test]
    async fn a_new_token_is_used_and_a_missing_one_leaves_the_old() {
        assert_eq!(renewed(&Given(Ok("a")), "a").await, None);
        assert_eq!(renewed(&Given(Ok("b")), "a").await, Some("b".into()));
        assert_eq!(renewed(&Given(Err("away")), "a").await, None);
    }
}
