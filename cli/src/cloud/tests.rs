//! Checks and restores of an instance, with a server on this machine instead of Google's.

use api::doctor::Verdict;
use bus::SystemClock;
use chrono::TimeDelta;
use model::Clock;
use serde_json::json;
use testkit::CloudSqlServer;

use super::*;

async fn start() -> (CloudSqlServer, Cloud) {
    let server = CloudSqlServer::start("ebbflow", SystemClock.now()).await;
    let args = CloudArgs {
        project: Some("p".into()),
        instance: "ebbflow".into(),
        sql_endpoint: Some(server.url().into()),
    };
    let cloud = Cloud::connect(&args).await.unwrap();
    (server, cloud)
}

async fn checked(cloud: &Cloud) -> Vec<(String, bool, String)> {
    let (instance, backups) = (cloud.instance().await.unwrap(), cloud.backups().await.unwrap());
    let checks = checks(&instance, &backups, SystemClock.now());
    checks.into_iter().map(|check| (check.name, check.verdict == Verdict::Ok, check.message)).collect()
}

#[tokio::test]
async fn a_healthy_instance_passes_every_check() {
    let (_, cloud) = start().await;
    let checked = checked(&cloud).await;
    assert!(checked.iter().all(|(_, ok, _)| *ok), "{checked:?}");
    assert_eq!(checked.len(), 5);
    assert!(checked[0].2.contains("RUNNABLE") && checked[0].2.contains("POSTGRES_15"), "{checked:?}");
    assert!(checked[4].2.contains("Sunday, 4:00"), "{checked:?}");
}

#[tokio::test]
async fn whatever_is_wrong_with_an_instance_is_found() {
    let (server, cloud) = start().await;
    server.change(|state| {
        state.instances[0]["state"] = json!("SUSPENDED");
        state.instances[0]["settings"]["storageAutoResizeLimit"] = json!("10");
        state.instances[0]["settings"]["backupConfiguration"] = json!({"enabled": true});
        let soon = SystemClock.now() + TimeDelta::hours(3);
        state.instances[0]["scheduledMaintenance"] = json!({"startTime": soon.to_rfc3339()});
        state.backups =
            json!({"items": [{"id": "1", "status": "SUCCESSFUL", "endTime": "2020-01-01T00:00:00Z"}]});
    });
    let checked = checked(&cloud).await;
    assert!(checked.iter().all(|(_, ok, _)| !ok), "{checked:?}");
}

#[tokio::test]
async fn an_unknown_instance_is_named() {
    let (server, cloud) = start().await;
    server.change(|state| state.instances.clear());
    let error = format!("{:#}", cloud.instance().await.unwrap_err());
    assert!(
        error.contains("instance `ebbflow` of project `p`") && error.contains("does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn a_database_is_restored_to_a_moment_beside_the_old_one() {
    let (_, cloud) = start().await;
    let to = SystemClock.now() - TimeDelta::hours(1);
    let restored = restore(&cloud, to, Some("ebbflow-restored"), &SystemClock).await.unwrap();
    assert_eq!(restored.connection_name, "p:r:ebbflow-restored");
    let text = restored.to_string();
    // Users of functions that log in through IAM move, too, and what is as protected as its original can be given up.
    for part in [
        "database.instance = \"ebbflow-restored\"",
        "terraform import module.ebbflow.google_sql_database_instance.this projects/p/instances/ebbflow-restored\n",
        "users=$(terraform state list | grep 'google_sql_user\\.')\n",
        "terraform import \"$user\" \"p/ebbflow-restored/$name\"",
        "ebb doctor --cloud --project p --instance ebbflow-restored\n",
        "gcloud sql instances patch ebbflow-restored --no-deletion-protection --project=p\n",
        "gcloud sql instances delete ebbflow-restored --project=p",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let page = include_str!("../../../docs/src/operations/disaster-recovery.md");
    let page = page.replace("PROJECT", "p");
    let steps = text.lines().filter(|line| line.starts_with("  ") && !line.contains("set database.instance"));
    for step in steps.map(str::trim) {
        assert!(page.contains(step), "disaster-recovery.md does not say `{step}`");
    }
    let again = restore(&cloud, to, Some("ebbflow-restored"), &SystemClock).await.unwrap_err();
    assert!(format!("{again:#}").contains("already exists"), "{again:#}");
}

#[tokio::test]
async fn nothing_is_created_for_a_moment_that_cannot_be_restored() {
    let (server, cloud) = start().await;
    let now = SystemClock.now();
    for to in [now + TimeDelta::minutes(1), now - TimeDelta::days(8)] {
        let error = restore(&cloud, to, None, &SystemClock).await.unwrap_err().to_string();
        assert!(error.contains("must be in the past and not before"), "{error}");
    }
    server.change(|state| state.instances[0]["settings"]["backupConfiguration"] = json!({"enabled": true}));
    let error = restore(&cloud, now - TimeDelta::hours(1), None, &SystemClock).await.unwrap_err().to_string();
    assert!(error.contains("no point-in-time recovery"), "{error}");
    server.change(|state| assert_eq!(state.instances.len(), 1));
}

#[tokio::test]
async fn a_clone_that_fails_says_why() {
    let (server, cloud) = start().await;
    server.change(|state| (state.polls, state.fails) = (0, true));
    let to = SystemClock.now() - TimeDelta::hours(1);
    let error = restore(&cloud, to, None, &SystemClock).await.unwrap_err().to_string();
    assert!(error.contains("INTERNAL: no capacity"), "{error}");
}
