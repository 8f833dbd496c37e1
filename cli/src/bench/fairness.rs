//! One task of one tenant behind very many of another.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::limits::{LimitBody, LimitList};
use bus::Bus;
use chrono::DateTime;
use clock::{Clock, SystemClock};
use model::message::RunRequested;
use model::{Message, RunId, TenantId};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::time::interval;
use uuid::Uuid;

use super::report::{Figure, Outcome};
use super::workflows;
use super::world::Bench;

/// How many tasks may be under way at the same time.
const PLACES: u32 = 8;

/// The tenant that comes late.
const B: TenantId = TenantId(2);

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let many = bench.size(10_000, 2_000);
    let world = bench.world().await?;
    world.register(&[workflows::all_at_once("many"), workflows::chain("one", 1)]).await?;
    world.gauge.add_tenant(B.0, "b").await?;
    let places = LimitBody { places: Some(PLACES) };
    let _: LimitList = world.client().post(&["limits", "queue", "light"], HeaderMap::new(), &places).await?;
    let items = Value::from((0..many).collect::<Vec<u32>>());
    world.trigger("many", Map::from_iter([("items".to_owned(), items)])).await?;
    let mut ticks = interval(Duration::from_millis(2));
    // Until A's tasks come and go, with most of them still in line.
    while world.gauge.tasks_ended(DateTime::UNIX_EPOCH, SystemClock.now()).await? < i64::from(many) / 20 {
        ticks.tick().await;
    }
    ensure!(world.gauge.waiting().await? > i64::from(many) / 2, "A's tasks have gone before B's came");
    world.broker.publish(&[Message::RunRequested(one_of_b())]).await?;
    let before = loop {
        ticks.tick().await;
        if let Some(before) = world.gauge.begun_before(B.0).await? {
            break before;
        }
    };
    let waited = world.gauge.waited(B.0).await?;
    world.close().await?;
    let figures = vec![
        // Those that had a place already when it came, and one round of the other tenants.
        Figure::new("tasks of A begun while B's waited", before as f64, "").at_most(f64::from(PLACES + 1)),
        Figure::new("B's task waited", waited, "ms"),
    ];
    let what = format!("one task of B behind {many} of A, with {PLACES} places");
    Ok(Outcome::new("fairness", what, figures).noting(format!(
        "{PLACES} tasks of A have a place when B's comes; one more is the round of the others"
    )))
}

fn one_of_b() -> RunRequested {
    RunRequested {
        run: RunId(Uuid::now_v7()),
        tenant: B,
        workflow: "one".into(),
        inputs: Map::new(),
        logical_date: None,
        labels: Map::new(),
        trigger: "message".into(),
        parent: None,
        priority: 0,
    }
}
