//! Parts of pages: what they tell of what happened, and what can be looked for.

use super::*;

fn run_of(number: u32) -> RunId {
    format!("018f0000-0000-7000-8000-{number:012}").parse().unwrap()
}

#[tokio::test]
async fn an_expression_is_tried_out_on_a_run_and_what_is_wrong_is_marked() {
    let (api, run, _world) = console().await;
    let tried = async |expression: &str| page(&api, &format!("/runs/{run}?tab=try&{expression}")).await;
    let value = tried("expression=inputs.who").await;
    assert!(
        value.contains("A text; as a condition it evaluates to true") && value.contains("Values used"),
        "{value}"
    );
    let wrong = tried("expression=inputs.whom+%3D%3D+1&task=greet").await;
    assert!(wrong.contains("<mark>inputs.whom</mark> == 1"), "{wrong}");
    assert!(wrong.contains("role=\"alert\"") && wrong.contains("<code>who</code>"), "{wrong}");
    let evil = tried("expression=%3Cscript%3E").await;
    assert!(evil.contains("It cannot be evaluated") && !evil.contains("<script>"), "{evil}");
    let secret = tried("expression=secrets.key").await;
    assert!(secret.contains("<mark>secrets.key</mark>"), "{secret}");
}

#[tokio::test]
async fn the_audit_log_tells_who_did_what_and_can_be_searched_and_exported() {
    let (api, run, _world) = console().await;
    press(&api, &format!("/runs/{run}/retry"), "").await;
    press(&api, &format!("/runs/{run}/resume"), "").await;
    let log = page(&api, "/operations/audit").await;
    for part in [&format!("/api/v1/runs/{run}/retry"), "200", "409", "href=\"/operations/audit/export\""] {
        assert!(log.contains(part), "{part} is missing in {log}");
    }
    let found = page(&api, "/operations/audit?text=retry&actor=&from=2020-01-01").await;
    assert!(found.contains("/retry</code>") && !found.contains("/resume</code>"), "{found}");
    assert!(found.contains("/operations/audit/export?from=2020-01-01"), "{found}");
    assert!(page(&api, "/operations/audit?actor=nobody").await.contains("No entry matches."));
    let (status, headers, lines) = read(&api, "localhost", "/operations/audit/export?from=2020-01-01").await;
    assert_eq!(
        (status, &headers[header::CONTENT_TYPE]),
        (StatusCode::OK, &"application/x-ndjson".parse().unwrap())
    );
    assert!(headers[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment"));
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 2, "{lines}");
}

#[tokio::test]
async fn limits_come_in_pages() {
    let (api, _, _world) = console().await;
    for number in 0..60 {
        let pool = model::Limit::Pool(TenantId::DEFAULT, format!("dock-{number:02}"));
        api.app.runtime.slots().resize(&pool, Some(3)).await.unwrap();
    }
    api.app.runtime.slots().resize(&model::Limit::Queue("light".to_owned()), Some(9)).await.unwrap();
    let first = page(&api, "/operations").await;
    assert!(first.contains("dock-49") && !first.contains("dock-50"), "{first}");
    assert!(!first.contains("No queue has been used yet"), "{first}");
    let (_, rest) = first.split_once("href=\"/operations?cursor=").unwrap();
    let cursor = rest.split('"').next().unwrap();
    let last = page(&api, &format!("/operations?cursor={cursor}")).await;
    assert!(last.contains("dock-59") && last.contains("Queue light") && !last.contains("dock-49"), "{last}");
    assert!(!last.contains("More limits"), "{last}");
    assert!(page(&api, "/").await.contains("<code>light</code>"), "queues are found behind all pools");
}

#[tokio::test]
async fn breakers_are_listed_with_a_button_that_resets_them() {
    let (api, _, _world) = console().await;
    assert!(page(&api, "/operations/breakers").await.contains("All breakers are closed"));
    let key = model::BreakerKey::of_host(model::TenantId::DEFAULT, "api.example", 443);
    api.app.runtime.slots().breakers().open_host(&key, EVIL).await.unwrap();
    let shown = page(&api, "/operations/breakers").await;
    assert!(
        shown.contains("<code class=\"strong\">api.example:443</code>") && shown.contains("open"),
        "{shown}"
    );
    assert!(!shown.contains(EVIL) && shown.contains("alert(1)"), "{shown}");
    let id = api.app.runtime.slots().breakers().read(&[key]).await.unwrap()[0].id;
    assert!(shown.contains(&format!("action=\"/operations/breakers/{id}/reset\"")), "{shown}");
}

#[tokio::test]
async fn a_task_that_was_skipped_shows_its_condition_and_the_value_it_had() {
    let (api, _, world) = console().await;
    let text =
        "{name: choosy, inputs: {n: {type: integer}}, tasks: [{name: only, type: noop, when: inputs.n > 3}]}";
    world.write(text).await;
    let run = start_of(&api.app, "choosy", 5, Map::from_iter([("n".into(), json!(1))]), None).await;
    let shown = page(&api, &format!("/runs/{run}")).await;
    let of_graph = "skipped: when inputs.n &gt; 3 (inputs.n was 1)</title>";
    assert!(shown.contains(of_graph) && shown.matches("(inputs.n was 1)").count() == 2, "{shown}");
}

#[tokio::test]
async fn workflows_come_in_pages_with_or_without_a_filter() {
    let (api, run, world) = console().await;
    for number in 0..60 {
        let tag = if number % 2 == 0 { "even" } else { "odd" };
        let text = format!("{{name: w{number:02}, tags: [{tag}], tasks: [{{name: a, type: noop}}]}}");
        world.write(&text).await;
    }
    let first = page(&api, "/workflows").await;
    assert!(first.contains(&format!("href=\"/runs/{run}\"")), "the last runs are there: {first}");
    assert!(first.contains(">w23</a>") && !first.contains(">w24</a>"), "25 with `hello`: {first}");
    assert!(first.contains("href=\"/workflows?cursor=w23\""), "{first}");
    let last = page(&api, "/workflows?cursor=w48").await;
    assert!(last.contains(">w59</a>") && !last.contains("rel=\"next\""), "{last}");
    let even = page(&api, "/workflows?tag=even").await;
    assert!(even.contains(">w48</a>") && !even.contains(">w50</a>") && !even.contains(">w01</a>"), "{even}");
    assert!(even.contains("href=\"/workflows?cursor=w48&amp;tag=even\""), "{even}");
    assert!(page(&api, "/workflows?tag=even&cursor=w48").await.contains(">w58</a>"));
}

#[tokio::test]
async fn a_fan_out_shows_how_many_children_ended_and_leads_to_them() {
    let (api, _, world) = console().await;
    let text =
        "{name: wide, tasks: [{name: split, type: fan_out, for_each: range(150), task: {type: noop}}]}";
    world.write(text).await;
    let run = start_of(&api.app, "wide", 2, Map::new(), None).await;
    let (_, _, page) = read(&api, "localhost", &format!("/runs/{run}")).await;
    let link = format!("href=\"/runs/{run}?parent=split\">0 of 150 children ended</a>");
    assert!(page.contains(&link) && !page.contains("split__"), "{page}");
    assert_eq!(page.matches("class=\"box\"").count(), 1, "they are folded into one");
    let (_, _, children) = read(&api, "localhost", &format!("/runs/{run}?parent=split")).await;
    for part in ["Children of split", "tasks/split__0\"", "tasks/split__99\"", "?parent=split&amp;cursor="] {
        assert!(children.contains(part), "{part} is missing in {children}");
    }
    assert!(!children.contains("split__100"), "a page is bounded");
}

#[tokio::test]
async fn runs_that_have_to_do_with_each_other_lead_to_each_other() {
    let (api, first, world) = console().await;
    let limited = "{name: single, concurrency: {limit: 1, policy: queue}, tasks: [{name: only, type: noop}]}";
    world.write(limited).await;
    let parent =
        Parent { key: TaskKey { run: first, task: TaskIndex(0) }, attempt: 1, waits: false, depth: 1 };
    let going_on = start_of(&api.app, "single", 3, Map::new(), Some(parent)).await;
    let held = start_of(&api.app, "single", 4, Map::new(), None).await;
    let page = async |path: String| read(&api, "localhost", &path).await.2;
    assert!(page(format!("/runs/{first}")).await.contains(&format!("href=\"/runs?parent={first}\"")));
    let list = page(format!("/runs?parent={first}")).await;
    assert!(list.contains(&going_on.to_string()) && !list.contains(&held.to_string()), "{list}");
    let child = page(format!("/runs/{going_on}")).await;
    assert!(
        child.contains("task greet of ") && child.contains(&format!("href=\"/runs/{first}\"")),
        "{child}"
    );
    let waiting = page(format!("/runs/{held}")).await;
    let link = format!("href=\"/runs/{going_on}\">Waits for ");
    assert!(waiting.contains(&link), "{waiting}");
}

#[tokio::test]
async fn a_running_task_shows_how_far_it_has_come() {
    let (api, _, world) = console().await;
    world.write("{name: long, tasks: [{name: load, type: bash, config: {command: sleep 9}}]}").await;
    let run = start_of(&api.app, "long", 6, Map::new(), None).await;
    let (task, worker) = (model::TaskIndex(0), model::WorkerId(run_of(8).0));
    let sign = store::Heartbeat { worker, facts: None, at: api.app.now() };
    api.app.runtime.store().beat(&sign).await.unwrap();
    let claim = runtime::Command::Claim { task, attempt: 1, worker };
    api.app.runtime.settle(run, claim).await.unwrap();
    let (key, workers) = (model::TaskKey { run, task }, api.app.runtime.workers());
    let checkpoint = json!({"phase": EVIL, "state": {}});
    workers.keep_checkpoint(key, 1, checkpoint).await.unwrap();
    for (second, rows) in [(1, 1_000.0), (2, 5_000.0)] {
        let report = model::ProgressReport {
            done: Some(model::Done { fraction: 0.42, message: Some(EVIL.to_owned()) }),
            metrics: [("rows".to_owned(), rows)].into(),
            ..model::ProgressReport::new(1, api.app.now() + chrono::TimeDelta::seconds(second))
        };
        workers.report_progress(key, &report).await.unwrap();
    }
    for path in [format!("/runs/{run}"), format!("/runs/{run}/tasks/load")] {
        let shown = page(&api, &path).await;
        assert!(shown.contains("42 percent done") && shown.contains("42 %"), "{path}: {shown}");
        assert!(!shown.contains(EVIL) && shown.contains("alert(1)"), "{path}: {shown}");
    }
    let shown = page(&api, &format!("/runs/{run}/tasks/load")).await;
    assert!(shown.contains("rows from 1000 to 5000") && shown.contains("<polyline"), "{shown}");
}
