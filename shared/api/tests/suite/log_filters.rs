//! Log filters: what the instances of a function log, for a while.

use axum::http::StatusCode;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_log_filter_is_set_for_a_while_and_reset() {
    let world = World::new().await;
    let set = world
        .post("/log-filters/execute", r#"{"filter": "info,ebbflow_runtime=debug", "minutes": 30}"#)
        .await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.body);
    assert_eq!(set.body["filter"], "info,ebbflow_runtime=debug");
    assert_eq!(set.body["until"], "2027-01-15T08:30:00Z");
    let listed = world.get("/log-filters").await.body;
    assert_eq!(listed["items"].as_array().unwrap().len(), 5);
    assert!(listed["items"].as_array().unwrap().contains(&set.body), "{listed}");
    let reset = world.post("/log-filters/execute", r#"{"filter": null}"#).await.body;
    assert_eq!(reset, json!({"function": "execute", "filter": null, "until": null, "set_by": null}));
}

#[tokio::test]
async fn what_is_no_filter_is_rejected() {
    let world = World::new().await;
    for (path, body, code) in [
        ("/log-filters/cron", r#"{"filter": "debug"}"#, "bad_function"),
        ("/log-filters/sweep", r#"{"filter": "debug", "minutes": 1441}"#, "bad_minutes"),
        ("/log-filters/sweep", r#"{"filter": "ebbflow=loud"}"#, "bad_filter"),
    ] {
        let rejected = world.post(path, body).await;
        assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", rejected.body);
        assert_eq!(rejected.body["error_code"], code, "{}", rejected.body);
    }
}
