//! The state shared by a function's handlers.

use std::sync::Arc;

use accounts::Accounts;
use auth::PushAuth;
use bus::SystemClock;
use model::Clock;
use read::Database;
use runtime::Runtime;
use store::Postgres;

use crate::config::{BusConfig, DatabaseLogin};
use crate::database_login::{self, AccessTokens, Login};
use crate::starting::{self, Gate};
use crate::{Config, FileProblems, Operations};

/// The state shared by a function's handlers. Cloning is cheap.
#[derive(Clone)]
pub struct App {
    /// Reads and changes runs.
    pub runtime: Arc<Runtime>,
    /// Authenticates the pushes of the bus.
    pub push: Arc<PushAuth>,
    /// Access to `/metrics` and `/log-level`, and what the metrics cover.
    pub operations: Operations,
    /// The problems of the files in the folder that `ebb dev` watches.
    pub file_problems: FileProblems,
}

/// A function's app and its connections.
pub struct Connected {
    /// The state of its handlers.
    pub app: App,
    /// The database, for reads on behalf of callers.
    pub database: Database,
    /// Grants, tokens, sessions, the audit log and idempotency records.
    pub accounts: Accounts,
}

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database is unavailable or returned an error.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The token for the database login is unavailable.
    #[error("cannot get a token for the database login: {0}")]
    Login(String),
    /// The bus is unavailable or returned an error.
    #[error(transparent)]
    Bus(#[from] bus::Error),
    /// The sweep is to request its wake-ups from a queue that is not named.
    #[error("EBB_WAKE is tasks, so the sweep needs EBB_WAKE_QUEUE and EBB_WAKE_URL")]
    NoWakeQueue,
    /// The keys for push tokens are unavailable.
    #[error(transparent)]
    Auth(#[from] auth::Error),
}

impl App {
    /// An app whose `/metrics` and `/log-level` only the pushing account may use.
    pub fn new(runtime: Arc<Runtime>, push: PushAuth) -> Self {
        let (operations, file_problems) = (Operations::default(), FileProblems::default());
        Self { runtime, push: Arc::new(push), operations, file_problems }
    }

    /// The same app with other access for operators.
    pub fn operated(self, operations: Operations) -> Self {
        Self { operations, ..self }
    }

    /// The same app, whose metrics include the load in the store.
    pub fn reporting_load(mut self) -> Self {
        self.operations.with_load = true;
        self
    }

    /// The current time of the app's clock.
    pub fn now(&self) -> model::Instant {
        self.runtime.clock().now()
    }
}

impl Connected {
    /// Connects as soon as the database accepts a connection. A cold database, or the network of a new instance, may take
    /// minutes; and so may a new account until the database knows it. A database that nobody has migrated yet has responded:
    /// the first migration runs when the functions are there. Also returns the login, if its password changes.
    pub(crate) async fn when_available(
        config: &Config,
        gate: &Gate,
    ) -> Result<(Self, Option<Arc<Login>>), StartError> {
        let is_temporary = |error: &StartError| match error {
            StartError::Store(store::Error::Unavailable(_)) | StartError::Login(_) => true,
            StartError::Store(store::Error::NotPrepared(_)) => {
                gate.database_responded();
                true
            }
            StartError::Store(_) => config.database_login == DatabaseLogin::Iam,
            StartError::Bus(_) | StartError::NoWakeQueue | StartError::Auth(_) => false,
        };
        starting::retry(|| Self::new(config), is_temporary).await
    }

    /// Connects to the database and the bus that the configuration names, on the machine's clock.
    async fn new(config: &Config) -> Result<(Self, Option<Arc<Login>>), StartError> {
        let (url, connections) = (&config.database_url, config.database_connections);
        let (store, login) = match config.database_login {
            DatabaseLogin::Password => (Postgres::open(url, None, connections).await?, None),
            DatabaseLogin::Iam => {
                let tokens =
                    AccessTokens::of_this_account(database_login::SCOPE).map_err(StartError::Login)?;
                let (store, login) = Login::connect(tokens, url, connections).await?;
                (store, Some(login))
            }
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let bus: Arc<dyn bus::Bus> = match &config.bus {
            BusConfig::PubSub { project, endpoint, topic_prefix } => {
                let bus = bus::pubsub::PubSub::connect(project, endpoint.clone()).await?;
                Arc::new(bus.with_prefix(topic_prefix))
            }
            BusConfig::Broker { url } => Arc::new(bus::remote::Remote::new(url, "local")?),
        };
        let (database, accounts) = (Database::new(&store), Accounts::new(&store));
        let quota = Some(config.run_quota).filter(|quota| *quota > 0);
        let (exact_wake_ups, liveness) = (config.wake.is_exact(), config.liveness);
        let settings = runtime::Settings { run_quota: quota, exact_wake_ups, liveness };
        let runtime = Runtime::new(Arc::new(store), bus, clock).with(settings);
        let app = App::new(Arc::new(runtime), config.push.build()?);
        let operations = Operations { token: config.operations_token.clone(), ..Operations::default() };
        Ok((Self { app: app.operated(operations), database, accounts }, login))
    }
}
