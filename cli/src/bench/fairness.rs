//! One task of one tenant behind very many of another.

use std::time::Duration;

use anyhow::Result;
use api::limits::{LimitBody, LimitList, LimitView};
use bus::Bus;
use model::message::RunRequested;
use model::{Message, RunId, TenantId};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::time::interval;
use uuid::Uuid;

use super::report::{Figure, Outcome};
use super::workflows;
use super::world::{Bench, World};

/// The queue that they share, and how many places it has at first.
const QUEUE: &str = "light";
const PLACES: u32 = 8;

/// How often to look how far they are.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The tenant that comes late.
const B: TenantId = TenantId(2);

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let many = bench.size(10_000, 2_000);
    let world = bench.world().await?;
    world.register(&[workflows::all_at_once("many"), workflows::chain("one", 1)]).await?;
    world.gauge.add_tenant(B.0, "b").await?;
    set_places(&world, PLACES).await?;
    let items = Value::from((0..many).collect::<Vec<u32>>());
    world.trigger("many", Map::from_iter([("items".to_owned(), items)])).await?;
    // A's tasks come and go for a while. Then nobody is given a place until B's stands in line, so that what is counted
    // is what came before it there.
    queue_until(&world, |queue| queue.waiting < many - many / 20).await?;
    set_places(&world, 0).await?;
    queue_until(&world, |queue| queue.used == 0).await?;
    world.broker.publish(&[Message::RunRequested(one_of_b())]).await?;
    let queue = queue_until(&world, |queue| queue.line.iter().any(|it| !it.own && it.waiting > 0)).await?;
    set_places(&world, 1).await?;
    let mut ticks = interval(LOOK_EVERY);
    let before = loop {
        ticks.tick().await;
        if let Some(before) = world.gauge.begun_before(B.0).await? {
            break before;
        }
    };
    world.close().await?;
    let figures = vec![
        Figure::new("tasks of A before B's: a round is one", before as f64, "").at_most(1.0),
        Figure::new("tasks in line when B's came", f64::from(queue.waiting), ""),
    ];
    Ok(Outcome::new("fairness", format!("one task of B behind {many} of A, one place"), figures))
}

/// Says how many tasks may be under way at the same time.
async fn set_places(world: &World, places: u32) -> Result<()> {
    let body = LimitBody { places: Some(places) };
    let _: LimitList = world.client().post(&["limits", "queue", QUEUE], HeaderMap::new(), &body).await?;
    Ok(())
}

/// The queue, once it is as wanted and someone has been in its line.
async fn queue_until(world: &World, wanted: impl Fn(&LimitView) -> bool) -> Result<LimitView> {
    let mut ticks = interval(LOOK_EVERY);
    loop {
        let limits: LimitList = world.client().get(&["limits"], &[]).await?;
        let queue = limits.items.into_iter().find(|limit| (&*limit.kind, &*limit.name) == ("queue", QUEUE));
        if let Some(queue) = queue.filter(|queue| !queue.line.is_empty() && wanted(queue)) {
            return Ok(queue);
        }
        ticks.tick().await;
    }
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
