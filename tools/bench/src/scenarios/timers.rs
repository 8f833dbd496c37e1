//! Many timers that are due at the same instant, and an idle minute.

use anyhow::{Result, ensure};
use bus::SystemClock;
use chrono::{DurationRound, TimeDelta};
use futures::StreamExt;
use model::Clock;
use serde_json::Map;

use crate::report::{Figure, Outcome};
use crate::workflows;
use crate::world::{Bench, World};

/// The number of sleeping tasks of a run.
const ASLEEP: usize = 100;

const MAX_CONCURRENT_REQUESTS: usize = 16;

pub(super) async fn run(bench: &Bench) -> Result<Outcome> {
    let runs = bench.size(1_000, 20);
    let world = bench.world().await?;
    world.register(&[workflows::sleepers("sleepers", ASLEEP), workflows::nap("nap")]).await?;
    let posts = futures::stream::iter(0..runs).map(|_| world.trigger("sleepers", Map::new()));
    let posted: Vec<_> = posts.buffer_unordered(MAX_CONCURRENT_REQUESTS).collect().await;
    posted.into_iter().collect::<Result<()>>()?;
    let due = SystemClock.now() + bench.size(TimeDelta::seconds(10), TimeDelta::seconds(3));
    let timers = world.database.move_timers(due).await?;
    ensure!(timers == (runs * ASLEEP) as u64, "{timers} timers exist instead of {}", runs * ASLEEP);
    // Wakes the sweep, since its timer is due soon.
    world.trigger("nap", Map::new()).await?;
    world.drain().await?;
    let (early, last) = world.database.woken(due).await?;
    let late = (last - due).as_seconds_f64();
    let mut figures = vec![
        Figure::new("timers fired", timers as f64 / late, "/s").at_least(5_000.0),
        Figure::new("timers fired early", early as f64, "").at_most(0.0),
        Figure::new("lateness of the last one", late * 1e3, "ms"),
    ];
    if !bench.quick {
        bench.progress("watching an idle minute");
        if let Some(statements) = idle_minute(&world).await? {
            figures.push(Figure::new("statements in an idle minute", statements as f64, "").at_most(1.0));
        }
    }
    world.close().await?;
    let outcome = Outcome::new("timers", format!("{timers} timers due at once, in {runs} runs"), figures);
    Ok(if bench.quick { outcome.with_note("with --quick, the idle minute is not measured") } else { outcome })
}

/// The number of statements in one idle minute; none where statements cannot be counted.
async fn idle_minute(world: &World) -> Result<Option<i64>> {
    let minute = TimeDelta::minutes(1);
    let half_past = |now: model::Instant| now.duration_trunc(minute).unwrap_or(now) + minute * 3 / 2;
    // One tick of the sweep is in the middle of that minute; the tick before has ended.
    let from = half_past(SystemClock.now());
    SystemClock.wait_until(from).await;
    if !world.database.reset_statements().await {
        return Ok(None);
    }
    SystemClock.wait_until(from + minute).await;
    Ok(Some(world.database.statements().await?.iter().map(|statement| statement.calls).sum()))
}
