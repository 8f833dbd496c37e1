//! Configuration, read once at start. All problems are reported together.

mod access;
mod containment;
mod environment;
mod limits;
mod liveness;
mod telemetry;
mod urls;
mod user_code;
mod wake;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use auth::{GOOGLE_ISSUERS, GOOGLE_KEYS_URL, Keys, PushAuth, Verifier};
use model::InstalledQueue;
use runtime::Liveness;
use store::Connections;

use crate::{EgressPolicy, Secrets};

pub use access::{ApiConfig, IntrospectionConfig, IssuerConfig, SignInConfig};
pub use containment::ContainmentConfig;
pub use environment::Environment;
pub use liveness::liveness;
pub use telemetry::{OtlpAuth, OtlpConfig};
pub use user_code::UserCode;
pub use wake::WakeConfig;
pub use worker::WorkerConfig;

/// A function's settings, from its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// `PORT`: where to listen.
    pub port: u16,
    /// `EBB_HOST`: the address to listen on; all addresses by default.
    pub host: IpAddr,
    /// `DATABASE_URL`: the Postgres that holds all state.
    pub database_url: String,
    /// `EBB_DATABASE_LOGIN`: how to log in to it.
    pub database_login: DatabaseLogin,
    /// `EBB_DATABASE_CONNECTIONS`, `EBB_DATABASE_IDLE_SECONDS`: how many connections this instance opens and keeps.
    pub database_connections: Connections,
    /// `EBB_GRACE_SECONDS`: how long work in progress may continue after SIGTERM.
    pub grace_seconds: u32,
    /// `EBB_QUEUE`: the queue that this instance's worker serves, for display.
    pub queue: Option<String>,
    /// `EBB_REQUEST_SECONDS`: after this time the platform ends a request.
    pub request_seconds: Option<u32>,
    /// `EBB_QUEUES`: the queues of the installation, for those that register workflows.
    pub listed_queues: Option<BTreeMap<String, InstalledQueue>>,
    /// The bus to publish to.
    pub bus: BusConfig,
    /// How pushes are authenticated.
    pub push: PushConfig,
    /// `EBB_OPERATIONS_TOKEN`: a token that may read `/metrics` and set `/log-level`.
    pub operations_token: Option<String>,
    /// `EBB_QUOTA_RUNS`: the maximum number of unfinished runs of a tenant, beyond which none is started,
    /// whatever its origin; 0 for no limit.
    pub run_quota: u32,
    /// Who may use the API.
    pub api: Option<ApiConfig>,
    /// How long finished runs are kept.
    pub retention: RetentionConfig,
    /// `EBB_CONSOLE_URL`: the console's address, for links.
    pub console_url: Option<String>,
    /// The collector that receives metrics and spans.
    pub otlp: Option<OtlpConfig>,
    /// The source that wakes the sweep.
    pub wake: WakeConfig,
    /// The hosts that tasks, sensors and callbacks may call.
    pub egress: EgressPolicy,
    /// The secrets that workflows refer to.
    pub secrets: Secrets,
    /// `EBB_STORAGE_ENDPOINT`: a server with the API of Google Cloud Storage, instead of Google's.
    pub storage_endpoint: Option<String>,
    /// How the programs of tasks are contained.
    pub containment: ContainmentConfig,
    /// `EBB_HEARTBEAT_SECONDS`, `EBB_DEAD_SECONDS`: how often workers send heartbeats, and when they are dead.
    pub liveness: Liveness,
    /// `EBB_USER_CODE`: whether execute runs code of users; `deny` by default.
    pub user_code: UserCode,
}

/// How to log in to the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DatabaseLogin {
    /// `password`: with the credentials in the address.
    #[default]
    Password,
    /// `iam`: with this function's own account and its access token as the password.
    Iam,
}

/// How many days finished runs and their records are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetentionConfig {
    /// `EBB_RETENTION_SUCCEEDED_DAYS`: runs that succeeded.
    pub succeeded: u32,
    /// `EBB_RETENTION_FAILED_DAYS`: runs that failed or were cancelled.
    pub failed: u32,
    /// `EBB_RETENTION_LOGS_DAYS`: logs of runs that ended.
    pub logs: u32,
    /// `EBB_RETENTION_OUTPUTS_DAYS`: outputs of runs that ended.
    pub outputs: u32,
    /// `EBB_RETENTION_AUDIT_DAYS`: the audit log.
    pub audit: u32,
    /// `EBB_RETENTION_DEAD_LETTERS_DAYS`: messages that could not be processed.
    pub dead_letters: u32,
    /// Where runs are archived before they are deleted.
    pub archive: Option<ArchiveConfig>,
}

/// Where archived runs go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArchiveConfig {
    /// `EBB_ARCHIVE_DIR`: a folder of this machine.
    Folder(String),
    /// `EBB_ARCHIVE_BUCKET`: a Google Cloud Storage bucket; `EBB_STORAGE_ENDPOINT`: on a compatible server.
    Bucket {
        /// The name of the bucket.
        name: String,
        /// The server's address, if it is not Google's.
        endpoint: Option<String>,
    },
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            succeeded: 90,
            failed: 365,
            logs: 30,
            outputs: 7,
            dead_letters: 365,
            audit: 400,
            archive: None,
        }
    }
}

/// The bus to publish to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BusConfig {
    /// `EBB_PROJECT`: Google Pub/Sub of this project; `EBB_PUBSUB_ENDPOINT`: an emulator instead.
    PubSub {
        /// The id of the project.
        project: String,
        /// The emulator's address, if it is not Google's service.
        endpoint: Option<String>,
        /// `EBB_TOPIC_PREFIX`: what the ids of topics begin with.
        topic_prefix: String,
    },
    /// `EBB_BROKER_URL`: a local broker that accepts messages over HTTP.
    Broker {
        /// The address of the broker.
        url: String,
    },
}

/// How pushes are authenticated: `EBB_PUSH_AUTH`, which has no default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushConfig {
    /// `oidc`: the function checks signature and claims.
    Oidc {
        /// The accepted issuers and audience.
        tokens: TokenConfig,
        /// `EBB_PUSH_ACCOUNT`: the only account that may push.
        account: String,
    },
    /// `iam`: the platform has checked the signature; the function checks the claims.
    Iam {
        /// `EBB_PUSH_AUDIENCE`: the required audience.
        audience: String,
        /// `EBB_PUSH_ACCOUNT`: the only account that may push.
        account: String,
    },
    /// `none`: anyone may push. For an emulator, never for production.
    None,
}

/// Which tokens are accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenConfig {
    /// The accepted values of the `iss` claim.
    pub issuers: Vec<String>,
    /// The audience that tokens must name.
    pub audience: String,
    /// The issuer's key set.
    pub keys_url: String,
}

impl TokenConfig {
    /// Builds the verifier of such tokens.
    pub fn build(&self) -> Result<Verifier, auth::Error> {
        Ok(Verifier::new(self.issuers.clone(), self.audience.clone(), Keys::remote(&self.keys_url)?))
    }
}

impl PushConfig {
    /// Builds the check of pushes.
    pub fn build(&self) -> Result<PushAuth, auth::Error> {
        Ok(match self.clone() {
            Self::Oidc { tokens, account } => {
                PushAuth::Oidc { verifier: tokens.build()?, service_account: account }
            }
            Self::Iam { audience, account } => PushAuth::Iam { audience, service_account: account },
            Self::None => PushAuth::None,
        })
    }
}

/// Everything that is wrong with the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems(Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}

impl Config {
    /// Reads the configuration of a function.
    pub fn from_env(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader { environment, problems: Vec::new() };
        let push = reader.push();
        let config = Self {
            port: reader.number("PORT", 8080),
            host: reader.number("EBB_HOST", IpAddr::from([0, 0, 0, 0])),
            database_url: reader.database_url(),
            database_login: reader.login(),
            database_connections: reader.connections(),
            grace_seconds: reader.number("EBB_GRACE_SECONDS", crate::DEFAULT_GRACE_PERIOD.as_secs() as u32),
            queue: reader.optional("EBB_QUEUE"),
            request_seconds: reader.request_seconds(),
            listed_queues: reader.listed_queues(),
            bus: reader.bus(),
            wake: reader.wake(&push),
            push,
            operations_token: reader.optional("EBB_OPERATIONS_TOKEN"),
            run_quota: reader.number("EBB_QUOTA_RUNS", 100_000),
            api: reader.api(),
            retention: reader.retention(),
            console_url: reader.http_url("EBB_CONSOLE_URL"),
            otlp: reader.otlp(),
            egress: reader.egress(),
            secrets: reader.secrets(),
            storage_endpoint: reader.http_url("EBB_STORAGE_ENDPOINT"),
            containment: reader.containment(),
            liveness: reader.liveness(),
            user_code: reader.user_code(UserCode::Deny),
        };
        if reader.problems.is_empty() { Ok(config) } else { Err(Problems(reader.problems)) }
    }
}

struct Reader<'a> {
    environment: &'a Environment,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn optional(&self, name: &str) -> Option<String> {
        self.environment.get(name).map(str::to_owned)
    }

    fn needed(&mut self, name: &str, example: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is not set (for example {name}={example})"));
            String::new()
        })
    }

    fn number<N: std::str::FromStr + Copy>(&mut self, name: &str, default: N) -> N {
        match self.optional(name).map(|value| value.parse().map_err(|_| value)) {
            None => default,
            Some(Ok(number)) => number,
            Some(Err(value)) => {
                self.problems.push(format!("{name} is `{value}`, which is not a valid number"));
                default
            }
        }
    }

    fn login(&mut self) -> DatabaseLogin {
        match self.optional("EBB_DATABASE_LOGIN").as_deref() {
            None | Some("password") => DatabaseLogin::Password,
            Some("iam") => DatabaseLogin::Iam,
            Some(other) => {
                self.problems.push(format!("EBB_DATABASE_LOGIN is `{other}`; it must be password or iam"));
                DatabaseLogin::Password
            }
        }
    }

    fn retention(&mut self) -> RetentionConfig {
        let default = RetentionConfig::default();
        RetentionConfig {
            succeeded: self.days("EBB_RETENTION_SUCCEEDED_DAYS", default.succeeded),
            failed: self.days("EBB_RETENTION_FAILED_DAYS", default.failed),
            logs: self.days("EBB_RETENTION_LOGS_DAYS", default.logs),
            outputs: self.days("EBB_RETENTION_OUTPUTS_DAYS", default.outputs),
            audit: self.days("EBB_RETENTION_AUDIT_DAYS", default.audit),
            dead_letters: self.days("EBB_RETENTION_DEAD_LETTERS_DAYS", default.dead_letters),
            archive: self.archive(),
        }
    }

    fn archive(&mut self) -> Option<ArchiveConfig> {
        let endpoint = self.optional("EBB_STORAGE_ENDPOINT");
        match (self.optional("EBB_ARCHIVE_DIR"), self.optional("EBB_ARCHIVE_BUCKET")) {
            (None, None) => None,
            (Some(path), None) => Some(ArchiveConfig::Folder(path)),
            (None, Some(name)) => Some(ArchiveConfig::Bucket { name, endpoint }),
            (Some(_), Some(_)) => {
                self.problems
                    .push("EBB_ARCHIVE_DIR and EBB_ARCHIVE_BUCKET are both set; set only one of them".into());
                None
            }
        }
    }

    /// A number of days, from one to a hundred years.
    fn days(&mut self, name: &str, default: u32) -> u32 {
        let days = self.number(name, default);
        if (1..=36_500).contains(&days) {
            return days;
        }
        self.problems.push(format!("{name} is {days}; it must be from 1 to 36500 days"));
        default
    }

    fn bus(&mut self) -> BusConfig {
        match (self.optional("EBB_PROJECT"), self.optional("EBB_BROKER_URL")) {
            (Some(project), None) => BusConfig::PubSub {
                project,
                endpoint: self.optional("EBB_PUBSUB_ENDPOINT"),
                topic_prefix: self.topic_prefix(),
            },
            (None, Some(url)) => BusConfig::Broker { url },
            (project, _) => {
                let fault = if project.is_some() { "both are set" } else { "neither is set" };
                self.problems.push(format!("one of EBB_PROJECT (Pub/Sub) and EBB_BROKER_URL (a local broker) must be set, but {fault}"));
                BusConfig::Broker { url: String::new() }
            }
        }
    }

    fn push(&mut self) -> PushConfig {
        const ACCOUNT: &str = "invoker@project.iam.gserviceaccount.com";
        match self.optional("EBB_PUSH_AUTH").as_deref() {
            Some("oidc") => PushConfig::Oidc {
                tokens: self.tokens("EBB_PUSH", &GOOGLE_ISSUERS, GOOGLE_KEYS_URL),
                account: self.needed("EBB_PUSH_ACCOUNT", ACCOUNT),
            },
            Some("iam") => PushConfig::Iam {
                audience: self.needed("EBB_PUSH_AUDIENCE", "https://service.run.app"),
                account: self.needed("EBB_PUSH_ACCOUNT", ACCOUNT),
            },
            Some("none") => PushConfig::None,
            other => {
                let fault = other.map_or("is not set".to_owned(), |value| format!("is `{value}`"));
                self.problems
                    .push(format!("EBB_PUSH_AUTH {fault}; it must be oidc, iam or none, and has no default"));
                PushConfig::None
            }
        }
    }

    fn tokens(&mut self, prefix: &str, issuers: &[&str], keys_url: &str) -> TokenConfig {
        let issuers = match self.optional(&format!("{prefix}_ISSUER")) {
            Some(issuer) => vec![issuer],
            None => issuers.iter().map(ToString::to_string).collect(),
        };
        TokenConfig {
            issuers,
            audience: self.needed(&format!("{prefix}_AUDIENCE"), "https://service.run.app"),
            keys_url: self.optional(&format!("{prefix}_KEYS_URL")).unwrap_or_else(|| keys_url.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
