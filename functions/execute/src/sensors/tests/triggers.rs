//! Sensors of triggers: each new thing starts one run; and when they pause.

use super::*;

#[tokio::test]
async fn each_new_file_starts_one_run_however_often_the_sensor_polls() {
    let bench = Bench::new();
    let now = bench.clock.now();
    bench.watch(json!({"file": {"path": bench.file("*.csv")}})).await;
    bench.poll().await;
    assert_eq!(bench.count().await, 0);
    bench.put("a.csv", "one", now);
    bench.put("b.csv", "two", now);
    for _ in 0..2 {
        bench.poll().await;
        assert_eq!(bench.count().await, 2);
    }
    bench.put("a.csv", "changed", now + TimeDelta::seconds(9));
    bench.poll().await;
    assert_eq!(bench.count().await, 2, "the sensor is not for changes");
    bench.put("c.csv", "three", now);
    bench.poll().await;
    assert_eq!(bench.count().await, 3);
    std::fs::remove_file(bench.file("b.csv")).unwrap();
    bench.poll().await;
    let watermark = bench.trigger().await.watermark;
    assert_eq!(watermark.as_object().unwrap().len(), 2, "deleted files are forgotten: {watermark}");
}

#[tokio::test]
async fn what_a_sensor_finds_beyond_the_quota_is_found_again_once_there_is_room() {
    let settings = runtime::Settings { run_quota: Some(2), ..Default::default() };
    let bench = Bench::on(World::at("2027-01-15T08:00:00Z").with(settings), |executor| executor);
    let now = bench.clock.now();
    bench.watch(json!({"file": {"path": bench.file("*.csv")}})).await;
    bench.poll().await;
    for name in ["a.csv", "b.csv", "c.csv", "d.csv"] {
        bench.put(name, "text", now);
    }
    for _ in 0..20 {
        bench.poll().await;
    }
    assert_eq!(bench.count().await, 2);
    let trigger = bench.trigger().await;
    assert_eq!((trigger.failures, trigger.paused), (0, None), "its source is not to blame");
    for run in bench.runs("watched").await {
        bench.cancel(run.run.id).await;
    }
    bench.clock.advance(TimeDelta::seconds(2));
    bench.poll().await;
    assert_eq!(bench.count().await, 4);
}

#[tokio::test]
async fn a_sensor_for_changes_starts_with_the_existing_files() {
    let bench = Bench::new();
    let now = bench.clock.now();
    bench.put("a.csv", "one", now);
    bench.watch(json!({"file": {"path": bench.file("a.csv"), "changed": true}})).await;
    bench.poll().await;
    assert_eq!(bench.count().await, 0);
    for second in [1, 2] {
        bench.put("a.csv", "more", now + TimeDelta::seconds(second));
        bench.poll().await;
        bench.poll().await;
        assert_eq!(bench.count().await, second as usize);
    }
}

#[tokio::test]
async fn with_a_cursor_a_trigger_sees_each_row_once() {
    let database = testkit::database().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    connection.execute("create table orders (id bigint)").await.unwrap();
    let bench = Bench::new();
    std::fs::create_dir_all(bench.file("secrets/default")).unwrap();
    std::fs::write(bench.file("secrets/default/WAREHOUSE"), &database.url).unwrap();
    let query = "select id from orders where id > coalesce($1::bigint, 0) order by id";
    bench.watch(json!({"sql": {"url": "{{ secrets.WAREHOUSE }}", "query": query, "cursor": "id"}})).await;
    bench.poll().await;
    assert_eq!(bench.count().await, 0);
    connection.execute("insert into orders values (1), (2)").await.unwrap();
    bench.poll().await;
    bench.poll().await;
    assert_eq!((bench.count().await, bench.trigger().await.watermark), (1, json!({"cursor": 2})));
    connection.execute("insert into orders values (3)").await.unwrap();
    bench.poll().await;
    assert_eq!((bench.count().await, bench.trigger().await.watermark), (2, json!({"cursor": 3})));
}

#[tokio::test]
async fn rows_of_more_than_a_megabyte_fail_the_poll_of_a_trigger() {
    let database = testkit::database().await;
    let bench = Bench::new();
    std::fs::create_dir(bench.file("default")).unwrap();
    std::fs::write(bench.file("default/WAREHOUSE"), &database.url).unwrap();
    let query = "select 1 as id, repeat('x', 1100000) as text where $1::bigint is null";
    bench.watch(json!({"sql": {"url": "{{ secrets.WAREHOUSE }}", "query": query, "cursor": "id"}})).await;
    bench.poll().await;
    assert_eq!((bench.count().await, bench.trigger().await.failures), (0, 1));
}

#[tokio::test]
async fn each_change_to_an_answer_that_meets_the_condition_starts_one_run() {
    let (url, says) = service().await;
    let bench = Bench::new();
    bench.watch(json!({"http": {"url": url, "condition": "answer.body.ready"}})).await;
    for (ready, runs) in [(false, 0), (true, 1), (true, 1), (false, 1), (true, 2)] {
        *says.lock().unwrap() = (StatusCode::OK, json!({ "ready": ready }));
        bench.poll().await;
        assert_eq!(bench.count().await, runs);
    }
}

#[tokio::test]
async fn a_source_that_is_down_pauses_the_trigger_with_a_reason_until_a_person_resumes_it() {
    let bench = Bench::new();
    let folder = bench.file("later");
    bench
        .watch(json!({"file": {"path": format!("{folder}/*")}, "max_failures": 3, "interval_seconds": 10}))
        .await;
    for failures in 1..3 {
        bench.poll().await;
        let record = bench.trigger().await;
        assert_eq!((record.failures, record.paused), (failures, None));
    }
    bench.poll().await;
    let pause = bench.trigger().await.paused.unwrap();
    assert!(pause.reason.starts_with("it failed 3 times in a row: "), "{}", pause.reason);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(format!("{folder}/a"), "x").unwrap();
    bench.poll().await;
    assert_eq!(bench.count().await, 0, "it is paused");
    let key = bench.trigger().await.key;
    bench.store().pause_trigger(&key, None, bench.clock.now()).await.unwrap();
    bench.poll().await;
    assert_eq!((bench.count().await, bench.trigger().await.failures), (1, 0));
}

#[tokio::test]
async fn a_flapping_sensor_pauses_and_loses_nothing() {
    let (url, says) = service().await;
    let bench = Bench::new();
    bench
        .watch(json!({"http": {"url": url, "condition": "answer.body.ready"}, "max_events_per_hour": 3}))
        .await;
    for round in 0..8 {
        *says.lock().unwrap() = (StatusCode::OK, json!({"ready": round % 2 == 1}));
        bench.poll().await;
    }
    assert_eq!(bench.count().await, 3);
    let pause = bench.trigger().await.paused.unwrap();
    assert_eq!(pause.reason, "it started 3 runs within an hour, and `max_events_per_hour` is 3");
    bench.clock.advance(chrono::Duration::hours(2));
    let key = bench.trigger().await.key;
    bench.store().pause_trigger(&key, None, bench.clock.now()).await.unwrap();
    bench.poll().await;
    assert_eq!(bench.count().await, 4, "events that it did not start runs for are still new");
}
