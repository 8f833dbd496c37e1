//! Lists with filters, in other orders: what passes, and that pages lead through all of it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::World;

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

/// Three runs of `hello`, of the teams green, red and green, oldest first.
async fn three_runs() -> (World, Vec<String>) {
    let world = World::with_hello().await;
    let mut runs = Vec::new();
    for team in ["green", "red", "green"] {
        let body = json!({"labels": {"team": team}}).to_string();
        let answer = world.post("/workflows/hello/runs", body).await;
        runs.push(answer.body["id"].as_str().unwrap().to_owned());
    }
    (world, runs)
}

/// All pages of a list, with `limit` items each.
async fn all(world: &World, path: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{path}&limit={limit}{cursor}")).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.body);
        found.extend(ids(&page.body));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn runs_are_found_by_label_date_and_text() {
    let (world, runs) = three_runs().await;
    let green = [runs[2].clone(), runs[0].clone()];
    assert_eq!(all(&world, "/runs?label=team%3Dgreen", 1).await, green);
    assert_eq!(all(&world, "/runs?label=team%3Dgreen&state=queued&workflow=hello", 1).await.len(), {
        let started = world.get("/runs?state=queued").await.body;
        ids(&started).iter().filter(|id| green.contains(id)).count()
    });
    assert_eq!(all(&world, "/runs?text=RED", 1).await, [runs[1].clone()]);
    assert_eq!(all(&world, &format!("/runs?text={}", runs[0]), 5).await, [runs[0].clone()]);
    assert_eq!(all(&world, "/runs?created_after=2027-01-15T08:00:00Z", 2).await.len(), 3);
    assert_eq!(all(&world, "/runs?created_before=2027-01-15T08:00:00Z", 2).await, [""; 0]);
}

#[tokio::test]
async fn runs_come_in_the_order_asked_for() {
    let (world, runs) = three_runs().await;
    let newest: Vec<String> = runs.iter().rev().cloned().collect();
    assert_eq!(all(&world, "/runs?sort=-created_at", 2).await, newest);
    assert_eq!(all(&world, "/runs?sort=created_at", 2).await, runs);
    assert_eq!(
        all(&world, "/runs?sort=created_at&label=team%3Dgreen", 1).await,
        [runs[0].clone(), runs[2].clone()]
    );
    assert_eq!(all(&world, "/runs?sort=-finished_at", 2).await, [""; 0], "none has ended");
    for run in [&runs[1], &runs[0]] {
        assert_eq!(world.post(&format!("/runs/{run}/cancel"), "{}").await.status, StatusCode::OK);
    }
    assert_eq!(all(&world, "/runs?sort=finished_at", 1).await, [runs[0].clone(), runs[1].clone()]);
    assert_eq!(all(&world, "/runs?sort=-finished_at&state=cancelled", 1).await.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_listed_so_is_refused_with_what_can() {
    let world = World::new().await;
    for (path, words) in [
        ("/runs?sort=colour", "-created_at, created_at, -finished_at, finished_at"),
        ("/runs?label=team", "name=value"),
        ("/runs?label=a%3Db&sort=finished_at", "created_at"),
        ("/runs?text=", "1 to 200"),
        ("/runs?created_after=yesterday", "created_after"),
        ("/workflows?sort=age", "name, -name, updated_at, -updated_at"),
        ("/workflows?text=", "1 to 200"),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(words), "{path}: {message}");
    }
}

#[tokio::test]
async fn workflows_are_found_by_tag_and_text_and_come_in_the_order_asked_for() {
    let world = World::new().await;
    for (name, tags, description) in
        [("a", "[nightly]", "Loads orders"), ("b", "[]", "Counts"), ("c", "[nightly, slow]", "Mails")]
    {
        let text = format!(
            "name: {name}\ndescription: {description}\ntags: {tags}\ntasks: [{{name: x, type: noop}}]"
        );
        assert_eq!(world.post("/workflows", text).await.status, StatusCode::CREATED);
    }
    let list = async |query: &str| {
        let page = world.get(&format!("/workflows?{query}")).await.body;
        names(&page).into_iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(list("tag=nightly").await, ["a", "c"]);
    assert_eq!(list("tag=nightly&sort=-name").await, ["c", "a"]);
    assert_eq!(list("tag=night").await, [""; 0], "a tag is a whole word");
    assert_eq!(list("text=ORDERS").await, ["a"]);
    assert_eq!(list("text=slow").await, ["c"]);
    assert_eq!(list("sort=-updated_at").await, ["c", "b", "a"]);
    let first = world.get("/workflows?tag=nightly&limit=1").await.body;
    assert_eq!(names(&first), ["a"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/workflows?tag=nightly&limit=1&cursor={cursor}")).await.body;
    assert_eq!((names(&second), &second["next_cursor"]), (vec!["c"], &json!(null)));
}
