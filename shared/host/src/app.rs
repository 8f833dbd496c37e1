//! What a function's handlers work with.

use std::sync::Arc;

use auth::PushAuth;
use clock::{Clock, SystemClock};
use runtime::Runtime;
use store::Postgres;

use crate::config::{BusConfig, DatabaseLogin};
use crate::login::{self, AccessTokens};
use crate::{Config, Operations};

/// What a function's handlers work with; cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Changes runs.
    pub runtime: Arc<Runtime>,
    /// Says who may push.
    pub push: Arc<PushAuth>,
    /// Who may operate it, and what its metrics cover.
    pub operations: Operations,
}

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database is away or refuses.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// There is no token to log in to the database with.
    #[error("there is no token to log in to the database with: {0}")]
    Login(String),
    /// The bus is away or refuses.
    #[error(transparent)]
    Bus(#[from] bus::Error),
    /// The keys for push tokens cannot be had.
    #[error(transparent)]
    Auth(#[from] auth::Error),
}

impl App {
    /// An app that only the pushing account may operate.
    pub fn new(runtime: Arc<Runtime>, push: PushAuth) -> Self {
        Self { runtime, push: Arc::new(push), operations: Operations::default() }
    }

    /// The same app with other rules for operators.
    pub fn operated(self, operations: Operations) -> Self {
        Self { operations, ..self }
    }

    /// The same app, whose metrics include the load in the store.
    pub fn reporting_load(mut self) -> Self {
        self.operations.with_load = true;
        self
    }

    /// The parts that the configuration names, on the machine's clock.
    pub async fn connect(config: &Config) -> Result<Self, StartError> {
        let (url, connections) = (&config.database_url, config.database_connections);
        let store = match config.database_login {
            DatabaseLogin::Password => Postgres::connect(url, connections).await?,
            DatabaseLogin::Iam => {
                let tokens = AccessTokens::of_this_account().map_err(StartError::Login)?;
                login::connect(tokens, url, connections).await?
            }
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let bus: Arc<dyn bus::Bus> = match &config.bus {
            BusConfig::PubSub { project, endpoint } => {
                Arc::new(bus::pubsub::PubSub::connect(project, endpoint.clone()).await?)
            }
            BusConfig::Broker { url } => Arc::new(bus::remote::Remote::new(url, "local")?),
        };
        let app = Self::new(Arc::new(Runtime::new(Arc::new(store), bus, clock)), config.push.build()?);
        Ok(app.operated(Operations { token: config.operations_token.clone(), ..Operations::default() }))
    }

    /// The present instant.
    pub fn now(&self) -> model::Instant {
        self.runtime.clock().now()
    }
}
