//! One task of one tenant behind many tasks of another.

use std::time::Duration;

use anyhow::Result;
use api::limits::{LimitBody, LimitView};
use bus::Bus;
use model::message::RunRequested;
use model::{Message, RunId, TenantId};
use reqwest::header::HeaderMap;
use serde_json::Map;
use tokio::time::interval;
use uuid::Uuid;

use crate::report::{Figure, Outcome};
use crate::workflows;
use crate::world::{Bench, World};

/// The queue that both tenants share.
const QUEUE: &str = "light";
const SLOTS: u32 = 8;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The tenant that arrives late.
const B: TenantId = TenantId(2);

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let many = bench.size(10_000, 2_000);
    let world = bench.world().await?;
    world.register(&[workflows::all_at_once("many"), workflows::chain("one", 1)]).await?;
    world.database.add_tenant(B.0, "b").await?;
    set_slots(&world, SLOTS).await?;
    world.trigger("many", workflows::items(many as usize)).await?;
    // A's tasks run for a while. Then the queue has no slots until B's task waits, so that the count includes exactly the
    // tasks that get a slot before it.
    queue_until(&world, |queue| queue.waiting < many - many / 20).await?;
    set_slots(&world, 0).await?;
    queue_until(&world, |queue| queue.used == 0).await?;
    world.broker.publish(&[Message::RunRequested(run_of_b())]).await?;
    let queue =
        queue_until(&world, |queue| queue.fairness_groups.iter().any(|it| !it.own && it.waiting > 0)).await?;
    set_slots(&world, 1).await?;
    let mut ticks = interval(POLL_INTERVAL);
    let before = loop {
        ticks.tick().await;
        if let Some(before) = world.database.started_before(B.0).await? {
            break before;
        }
    };
    world.close().await?;
    let figures = vec![
        Figure::new("tasks of A before B's (one round)", before as f64, "").at_most(1.0),
        Figure::new("tasks waiting when B's arrived", f64::from(queue.waiting), ""),
    ];
    Ok(Outcome::new("fairness", format!("one task of B behind {many} of A, one slot"), figures))
}

async fn set_slots(world: &World, slots: u32) -> Result<()> {
    let body = LimitBody { slots: Some(slots) };
    let _: LimitView = world.client().post(&["limits", "queue", QUEUE], HeaderMap::new(), &body).await?;
    Ok(())
}

/// Waits until a task waits for the queue and the condition is met.
async fn queue_until(world: &World, wanted: impl Fn(&LimitView) -> bool) -> Result<LimitView> {
    let mut ticks = interval(POLL_INTERVAL);
    loop {
        let limits = world.client().all::<LimitView>(&["limits"]).await?;
        let queue = limits.into_iter().find(|limit| (&*limit.kind, &*limit.name) == ("queue", QUEUE));
        if let Some(queue) = queue.filter(|queue| !queue.fairness_groups.is_empty() && wanted(queue)) {
            return Ok(queue);
        }
        ticks.tick().await;
    }
}

fn run_of_b() -> RunRequested {
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
