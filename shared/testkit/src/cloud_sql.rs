//! The admin API of Cloud SQL, as a server on this machine speaks it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::Duration;
use model::Instant;
use serde_json::{Value, json};

type Answer = (StatusCode, Json<Value>);

/// A server with the admin API of Cloud SQL, for the project `p`. It keeps instances in memory, and rejects what Google rejects. It
/// serves until the runtime of the test ends.
#[derive(Clone)]
pub struct CloudSqlServer {
    url: String,
    state: Arc<Mutex<CloudSqlState>>,
}

/// What a [`CloudSqlServer`] keeps.
pub struct CloudSqlState {
    /// The instances, as the API describes them.
    pub instances: Vec<Value>,
    /// The list of backups, as the API describes it, of every instance.
    pub backups: Value,
    /// How often the operation is still running when it is read.
    pub polls: u32,
    /// Whether its operations end with an error.
    pub fails: bool,
}

impl CloudSqlServer {
    /// Serves a healthy instance of that name, with a backup that ended five hours before `now`.
    pub async fn start(name: &str, now: Instant) -> Self {
        let backups = json!({"items": [
            {"id": "2", "status": "FAILED", "endTime": now.to_rfc3339()},
            {"id": "1", "status": "SUCCESSFUL", "endTime": (now - Duration::hours(5)).to_rfc3339()},
        ]});
        let state = CloudSqlState { instances: vec![instance(name)], backups, polls: 1, fails: false };
        let state = Arc::new(Mutex::new(state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let server = Self { url, state };
        let router = Router::new()
            .route("/v1/projects/p/instances/{name}", get(read))
            .route("/v1/projects/p/instances/{name}/backupRuns", get(backups_of))
            .route("/v1/projects/p/instances/{name}/clone", post(clone))
            .route("/v1/projects/p/operations/{name}", get(operation))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// The address to send requests to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Reads or changes what it keeps.
    pub fn change<T>(&self, change: impl FnOnce(&mut CloudSqlState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn instance(name: &str) -> Value {
    json!({
        "kind": "sql#instance", "name": name, "project": "p", "state": "RUNNABLE", "databaseVersion": "POSTGRES_15",
        "connectionName": format!("p:r:{name}"),
        "settings": {
            "tier": "db-g1-small", "availabilityType": "ZONAL", "dataDiskSizeGb": "10", "storageAutoResize": true,
            "storageAutoResizeLimit": "0",
            "maintenanceWindow": {"day": 7, "hour": 4},
            "backupConfiguration": {
                "enabled": true, "pointInTimeRecoveryEnabled": true, "transactionLogRetentionDays": 7,
            },
        },
    })
}

fn error(status: StatusCode, message: &str) -> Answer {
    let reason = if status == StatusCode::NOT_FOUND { "notFound" } else { "invalid" };
    let body = json!({"error": {
        "code": status.as_u16(), "message": message, "errors": [{"domain": "global", "reason": reason, "message": message}],
    }});
    (status, Json(body))
}

async fn read(State(server): State<CloudSqlServer>, Path(name): Path<String>) -> Answer {
    let is_named = |instance: &&Value| instance["name"] == *name;
    match server.change(|state| state.instances.iter().find(is_named).cloned()) {
        Some(instance) => (StatusCode::OK, Json(instance)),
        None => error(StatusCode::NOT_FOUND, "The Cloud SQL instance does not exist."),
    }
}

async fn backups_of(State(server): State<CloudSqlServer>) -> Answer {
    (StatusCode::OK, Json(server.change(|state| state.backups.clone())))
}

async fn clone(
    State(server): State<CloudSqlServer>,
    Path(source): Path<String>,
    Json(body): Json<Value>,
) -> Answer {
    let context = &body["cloneContext"];
    let name = context["destinationInstanceName"].as_str().unwrap_or_default();
    let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.len() > 98
        || !name.starts_with(|letter: char| letter.is_ascii_lowercase())
        || !name.chars().all(is_allowed)
    {
        return error(StatusCode::BAD_REQUEST, "Invalid request: instance name.");
    }
    if context["pointInTime"].as_str().and_then(|text| text.parse::<Instant>().ok()).is_none() {
        return error(StatusCode::BAD_REQUEST, "Invalid request: pointInTime.");
    }
    server.change(|state| {
        let exists = |name: &str| state.instances.iter().any(|instance| instance["name"] == name);
        if exists(name) {
            return error(StatusCode::CONFLICT, "The Cloud SQL instance already exists.");
        }
        if !exists(&source) {
            return error(StatusCode::NOT_FOUND, "The Cloud SQL instance does not exist.");
        }
        state.instances.push(instance(name));
        (StatusCode::OK, Json(json!({"kind": "sql#operation", "name": "op-1", "status": "PENDING"})))
    })
}

async fn operation(State(server): State<CloudSqlServer>, Path(name): Path<String>) -> Answer {
    server.change(|state| {
        let status = if state.polls > 0 { "RUNNING" } else { "DONE" };
        state.polls = state.polls.saturating_sub(1);
        let mut operation = json!({"kind": "sql#operation", "name": name, "status": status});
        if state.fails {
            operation["error"] = json!({"errors": [{"code": "INTERNAL", "message": "no capacity"}]});
        }
        (StatusCode::OK, Json(operation))
    })
}
