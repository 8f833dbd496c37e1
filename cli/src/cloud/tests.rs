//! The admin API of Cloud SQL, as a server on this machine speaks it.

use std::sync::{Arc, Mutex};

use api::doctor::Verdict;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, Instant};
use serde_json::{Value, json};

use super::*;

type Answer = (StatusCode, Json<Value>);

/// Keeps instances in memory, and rejects what Google rejects.
#[derive(Clone)]
struct AdminApi(Arc<Mutex<Kept>>);

struct Kept {
    instances: Vec<Value>,
    backups: Value,
    /// How often the operation is still running when it is read.
    polls: u32,
    fails: bool,
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

impl AdminApi {
    async fn start() -> (Self, Cloud) {
        let ended = SystemClock.now() - TimeDelta::hours(5);
        let backups = json!({"items": [
            {"id": "2", "status": "FAILED", "endTime": SystemClock.now().to_rfc3339()},
            {"id": "1", "status": "SUCCESSFUL", "endTime": ended.to_rfc3339()},
        ]});
        let kept = Kept { instances: vec![instance("ebbflow")], backups, polls: 1, fails: false };
        let api = Self(Arc::new(Mutex::new(kept)));
        let router = Router::new()
            .route("/v1/projects/p/instances/{name}", get(read))
            .route("/v1/projects/p/instances/{name}/backupRuns", get(backups_of))
            .route("/v1/projects/p/instances/{name}/clone", post(clone))
            .route("/v1/projects/p/operations/{name}", get(operation))
            .with_state(api.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let args =
            CloudArgs { project: Some("p".into()), instance: "ebbflow".into(), sql_endpoint: Some(endpoint) };
        (api, Cloud::connect(&args).await.unwrap())
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.0.lock().unwrap());
    }
}

async fn read(State(api): State<AdminApi>, Path(name): Path<String>) -> Answer {
    let kept = api.0.lock().unwrap();
    match kept.instances.iter().find(|instance| instance["name"] == *name) {
        Some(instance) => (StatusCode::OK, Json(instance.clone())),
        None => error(StatusCode::NOT_FOUND, "The Cloud SQL instance does not exist."),
    }
}

async fn backups_of(State(api): State<AdminApi>) -> Answer {
    (StatusCode::OK, Json(api.0.lock().unwrap().backups.clone()))
}

async fn clone(State(api): State<AdminApi>, Path(source): Path<String>, Json(body): Json<Value>) -> Answer {
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
    let mut kept = api.0.lock().unwrap();
    if kept.instances.iter().any(|instance| instance["name"] == name) {
        return error(StatusCode::CONFLICT, "The Cloud SQL instance already exists.");
    }
    assert!(kept.instances.iter().any(|instance| instance["name"] == *source));
    kept.instances.push(instance(name));
    (StatusCode::OK, Json(json!({"kind": "sql#operation", "name": "op-1", "status": "PENDING"})))
}

async fn operation(State(api): State<AdminApi>, Path(name): Path<String>) -> Answer {
    let mut kept = api.0.lock().unwrap();
    let status = if kept.polls > 0 { "RUNNING" } else { "DONE" };
    kept.polls = kept.polls.saturating_sub(1);
    let mut operation = json!({"kind": "sql#operation", "name": name, "status": status});
    if kept.fails {
        operation["error"] = json!({"errors": [{"code": "INTERNAL", "message": "no capacity"}]});
    }
    (StatusCode::OK, Json(operation))
}

async fn checked(cloud: &Cloud) -> Vec<(String, bool, String)> {
    let (instance, backups) = (cloud.instance().await.unwrap(), cloud.backups().await.unwrap());
    let checks = checks(&instance, &backups, SystemClock.now());
    checks.into_iter().map(|check| (check.name, check.verdict == Verdict::Ok, check.message)).collect()
}

#[tokio::test]
async fn a_healthy_instance_passes_every_check() {
    let (_, cloud) = AdminApi::start().await;
    let checked = checked(&cloud).await;
    assert!(checked.iter().all(|(_, ok, _)| *ok), "{checked:?}");
    assert_eq!(checked.len(), 5);
    assert!(checked[0].2.contains("RUNNABLE") && checked[0].2.contains("POSTGRES_15"), "{checked:?}");
    assert!(checked[4].2.contains("Sunday, 4:00"), "{checked:?}");
}

#[tokio::test]
async fn whatever_is_wrong_with_an_instance_is_found() {
    let (api, cloud) = AdminApi::start().await;
    api.change(|kept| {
        kept.instances[0]["state"] = json!("SUSPENDED");
        kept.instances[0]["settings"]["storageAutoResizeLimit"] = json!("10");
        kept.instances[0]["settings"]["backupConfiguration"] = json!({"enabled": true});
        let soon = SystemClock.now() + TimeDelta::hours(3);
        kept.instances[0]["scheduledMaintenance"] = json!({"startTime": soon.to_rfc3339()});
        kept.backups =
            json!({"items": [{"id": "1", "status": "SUCCESSFUL", "endTime": "2020-01-01T00:00:00Z"}]});
    });
    let checked = checked(&cloud).await;
    assert!(checked.iter().all(|(_, ok, _)| !ok), "{checked:?}");
}

#[tokio::test]
async fn an_unknown_instance_is_named() {
    let (api, cloud) = AdminApi::start().await;
    api.change(|kept| kept.instances.clear());
    let error = format!("{:#}", cloud.instance().await.unwrap_err());
    assert!(
        error.contains("instance `ebbflow` of project `p`") && error.contains("does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn a_database_is_restored_to_a_moment_beside_the_old_one() {
    let (_, cloud) = AdminApi::start().await;
    let to = SystemClock.now() - TimeDelta::hours(1);
    let restored = restore(&cloud, to, Some("ebbflow-restored"), &SystemClock).await.unwrap();
    assert_eq!(restored.connection_name, "p:r:ebbflow-restored");
    let text = restored.to_string();
    for part in
        ["database.instance = \"ebbflow-restored\"", "terraform import", "gcloud sql instances delete"]
    {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let again = restore(&cloud, to, Some("ebbflow-restored"), &SystemClock).await.unwrap_err();
    assert!(format!("{again:#}").contains("already exists"), "{again:#}");
}

#[tokio::test]
async fn nothing_is_created_for_a_moment_that_cannot_be_restored() {
    let (api, cloud) = AdminApi::start().await;
    let now = SystemClock.now();
    for to in [now + TimeDelta::minutes(1), now - TimeDelta::days(8)] {
        let error = restore(&cloud, to, None, &SystemClock).await.unwrap_err().to_string();
        assert!(error.contains("must be in the past and not before"), "{error}");
    }
    api.change(|kept| kept.instances[0]["settings"]["backupConfiguration"] = json!({"enabled": true}));
    let error = restore(&cloud, now - TimeDelta::hours(1), None, &SystemClock).await.unwrap_err().to_string();
    assert!(error.contains("no point-in-time recovery"), "{error}");
    api.change(|kept| assert_eq!(kept.instances.len(), 1));
}

#[tokio::test]
async fn a_clone_that_fails_says_why() {
    let (api, cloud) = AdminApi::start().await;
    api.change(|kept| (kept.polls, kept.fails) = (0, true));
    let to = SystemClock.now() - TimeDelta::hours(1);
    let error = restore(&cloud, to, None, &SystemClock).await.unwrap_err().to_string();
    assert!(error.contains("INTERNAL: no capacity"), "{error}");
}
