//! Logs in to the database with the function's service account: the password is an access token, which expires after an
//! hour and is needed only to open a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use google_cloud_auth::credentials::{AccessTokenCredentials, Builder};
use store::{Connections, Postgres};
use tokio::time::Instant;
use tracing::warn;

use crate::app::StartError;
use crate::health;

/// The only scope of the tokens for the database.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/sqlservice.login";

/// How often to check for a new token while the process has CPU.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// How long a request waits for a new token. The connections that are open need none.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The login of a store whose password changes.
pub(crate) struct Login {
    passwords: Box<dyn Passwords>,
    store: Postgres,
    /// The password that new connections are opened with.
    used: Mutex<String>,
}

impl Login {
    /// Connects, and switches to each new password: every minute, which is for requests that take long, and before each request.
    pub(crate) async fn connect(
        passwords: impl Passwords + 'static,
        url: &str,
        connections: Connections,
    ) -> Result<(Postgres, Arc<Self>), StartError> {
        let password = passwords.current().await.map_err(StartError::Login)?;
        let store = Postgres::open(url, Some(&password), connections).await?;
        let (passwords, used) = (Box::new(passwords), Mutex::new(password));
        let login = Arc::new(Self { passwords, store: store.clone(), used });
        let renewing = login.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
            loop {
                ticks.tick().await;
                renewing.renew().await;
            }
        });
        Ok((store, login))
    }

    /// The same routes with a valid password for the connections that they open. An instance without CPU between requests may have
    /// slept until its token had expired and its connections were closed.
    pub(crate) fn renewed_for(self: Arc<Self>, router: Router) -> Router {
        router.layer(from_fn(move |request, next| self.clone().before_request(request, next)))
    }

    async fn before_request(self: Arc<Self>, request: Request, next: Next) -> Response {
        if !health::is_liveness(request.uri().path()) {
            self.renew().await;
        }
        next.run(request).await
    }

    /// Uses the current password. If there is none yet, the old one may still be valid.
    async fn renew(&self) {
        let current = tokio::time::timeout(RENEWAL_TIMEOUT, self.passwords.current()).await;
        match current.unwrap_or_else(|_| Err("it takes too long".to_owned())) {
            Ok(password) => self.switch_to(password),
            Err(error) => warn!("Cannot renew the token for the database yet: {error}"),
        }
    }

    fn switch_to(&self, password: String) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if *used != password {
            self.store.use_password(&password);
            *used = password;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use sqlx::ConnectOptions;
    use tower::ServiceExt;

    use super::*;

    /// Passwords as a test gives them.
    #[derive(Clone)]
    struct Given(Arc<Mutex<Result<String, String>>>);

    impl Given {
        fn give(&self, password: Result<&str, &str>) {
            *self.0.lock().unwrap() = password.map(str::to_owned).map_err(str::to_owned);
        }
    }

    #[async_trait]
    impl Passwords for Given {
        async fn current(&self) -> Result<String, String> {
            self.0.lock().unwrap().clone()
        }
    }

    /// The password of the next connection.
    fn next(store: &Postgres) -> String {
        store.pool().connect_options().to_url_lossy().password().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_request_opens_connections_with_the_token_of_now_and_without_one_with_the_last() {
        let database = testkit::migrated(Postgres::migrate).await;
        let given = Given(Arc::new(Mutex::new(Ok("first".to_owned()))));
        let connected = Login::connect(given.clone(), &database.url, Connections::at_most(1)).await;
        let (store, login) = connected.unwrap();
        let asked = move || std::future::ready(next(&store));
        let routes = Router::new().route("/push", get(asked)).route("/alive", get(|| async { "ok" }));
        let routes = login.clone().renewed_for(routes);
        let ask = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request).await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        assert_eq!(ask("/push").await, "first");
        // An hour without CPU.
        given.give(Ok("second"));
        assert_eq!(ask("/alive").await, "ok");
        assert_eq!(next(&login.store), "first", "a probe needs no connection");
        assert_eq!(ask("/push").await, "second");
        given.give(Err("away"));
        assert_eq!(ask("/push").await, "second");
    }
}
