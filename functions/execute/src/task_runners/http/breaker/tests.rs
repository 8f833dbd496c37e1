//! Several processes that call the same servers.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures::future::poll_immediate;
use model::{BreakerKind, ErrorClass, TenantId};
use serde_json::json;
use testkit::{ManualClock, World};
use tokio::net::TcpListener;

use super::*;
use crate::task_runners::tests::Bench;

fn key(tenant: TenantId, url: &str) -> BreakerKey {
    target(tenant, &Url::parse(url).unwrap())
}

fn away() -> BreakerKey {
    key(TenantId::DEFAULT, "https://away.example/x")
}

/// Admits a call, if it may begin at once.
async fn admit<'b>(breakers: &'b Breakers, target: &BreakerKey, clock: &'b ManualClock) -> Option<Call<'b>> {
    breakers.refresh(target, clock).await;
    let admitted = breakers.with(target, |server| server.admit(clock.now())).ok()?;
    let is_probe = admitted == Admitted::Probe;
    if is_probe {
        breakers.take_probe(target, clock).await.ok()?;
    }
    Some(Call { breakers, target: target.clone(), clock, is_probe })
}

fn refused() -> Outcome {
    Outcome::Failed("connection refused".into())
}

/// Lets enough calls fail to open the breaker of a server.
async fn fail(breakers: &Breakers, target: &BreakerKey, clock: &ManualClock) {
    for _ in 0..HOST_FAILURES {
        admit(breakers, target, clock).await.expect("it is closed").finish(refused()).await;
    }
}

fn second() -> TimeDelta {
    TimeDelta::seconds(1)
}

#[tokio::test]
async fn a_breaker_blocks_only_one_port_and_only_one_tenant() {
    let (breakers, clock) = (Breakers::default(), ManualClock::at("2026-01-01T00:00:00Z"));
    let (acme, beta) = (TenantId::DEFAULT, TenantId(7));
    fail(&breakers, &key(acme, "http://api.example:81/x"), &clock).await;
    let same = key(acme, "http://API.example.:81/y");
    assert!(admit(&breakers, &same, &clock).await.is_none(), "one server, by any spelling");
    for other in [key(acme, "http://api.example/x"), key(beta, "http://api.example:81/x")] {
        assert!(admit(&breakers, &other, &clock).await.is_some(), "{other:?}");
    }
}

#[tokio::test]
async fn without_a_database_each_process_has_its_own_breakers() {
    let (breakers, clock) = (Breakers::default(), ManualClock::at("2026-01-01T00:00:00Z"));
    fail(&breakers, &away(), &clock).await;
    let (since, until) = (clock.now(), clock.now() + second() * 5);
    assert_eq!(breakers.open(), [OpenBreaker { host: "away.example:443".into(), since, until }]);
    clock.advance(second() * 5);
    let probe = admit(&breakers, &away(), &clock).await.unwrap();
    assert!(admit(&breakers, &away(), &clock).await.is_none(), "others wait for the probe");
    drop(probe);
    let probe = admit(&breakers, &away(), &clock).await.expect("an abandoned probe admits another");
    probe.finish(refused()).await;
    clock.advance(second() * 9);
    assert!(admit(&breakers, &away(), &clock).await.is_none(), "twice as long");
    clock.advance(second());
    admit(&breakers, &away(), &clock).await.unwrap().finish(Outcome::Responded).await;
    assert_eq!(breakers.open(), []);
}

#[tokio::test]
async fn a_breaker_that_one_process_opened_holds_back_the_others_and_one_of_them_probes() {
    let world = World::at("2026-01-01T00:00:00Z");
    let clock = world.clock.clone();
    let [one, other] = [(); 2].map(|()| Breakers::shared(world.runtime.clone()));
    assert!(admit(&other, &away(), &clock).await.is_some(), "it has asked the database just before");
    fail(&one, &away(), &clock).await;
    clock.advance(second());
    assert!(admit(&other, &away(), &clock).await.is_none(), "a second later it knows");
    clock.advance(second() * 5);
    let probe = admit(&one, &away(), &clock).await.expect("the pause is over");
    assert!(admit(&other, &away(), &clock).await.is_none(), "one process probes");
    probe.finish(Outcome::Responded).await;
    clock.advance(second());
    for breakers in [&one, &other] {
        assert!(admit(breakers, &away(), &clock).await.is_some());
        assert_eq!(breakers.open(), []);
    }
}

#[tokio::test]
async fn a_failed_probe_blocks_every_process_again() {
    let world = World::at("2026-01-01T00:00:00Z");
    let clock = world.clock.clone();
    let [one, other] = [(); 2].map(|()| Breakers::shared(world.runtime.clone()));
    fail(&one, &away(), &clock).await;
    clock.advance(second() * 5);
    admit(&other, &away(), &clock).await.unwrap().finish(refused()).await;
    clock.advance(second() * 9);
    for breakers in [&one, &other] {
        assert!(admit(breakers, &away(), &clock).await.is_none(), "for twice as long");
    }
}

/// What something comes to while the database does not respond: it waits for as long as a call may, and no longer.
async fn unanswered<T>(clock: &ManualClock, asked: impl Future<Output = T>) -> T {
    let mut asked = pin!(asked);
    assert!(poll_immediate(&mut asked).await.is_none(), "it asks the database");
    clock.advance(DATABASE_TIMEOUT);
    poll_immediate(asked).await.expect("it waits no longer")
}

#[tokio::test]
async fn a_database_that_hangs_holds_up_no_call() {
    let world = World::at("2026-01-01T00:00:00Z");
    let clock = world.clock.clone();
    let [one, other] = [(); 2].map(|()| Breakers::shared(world.runtime.clone()));
    for _ in 1..HOST_FAILURES {
        admit(&one, &away(), &clock).await.unwrap().finish(refused()).await;
    }
    let last = admit(&one, &away(), &clock).await.unwrap();
    // In memory there is one transaction at a time: while this one is open, every other one waits.
    let hangs = world.runtime.store().begin().await.unwrap();
    unanswered(&clock, last.finish(refused())).await;
    assert_eq!(one.open().len(), 1, "it is open here alone");
    clock.advance(second() * 5);
    let probe = unanswered(&clock, admit(&one, &away(), &clock)).await.expect("it probes by itself");
    assert!(admit(&one, &away(), &clock).await.is_none(), "one call at a time");
    unanswered(&clock, probe.finish(refused())).await;
    assert!(admit(&one, &away(), &clock).await.is_none(), "for twice as long");
    clock.advance(second() * 10);
    let probe = unanswered(&clock, admit(&one, &away(), &clock)).await.unwrap();
    unanswered(&clock, probe.finish(Outcome::Responded)).await;
    assert_eq!(one.open(), []);
    drop(hangs);
    fail(&other, &away(), &clock).await;
    clock.advance(second());
    assert!(
        admit(&one, &away(), &clock).await.is_none(),
        "the database responds again: they share what they know"
    );
}

#[tokio::test]
async fn a_person_who_resets_a_breaker_closes_it_in_every_process() {
    let world = World::at("2026-01-01T00:00:00Z");
    let clock = world.clock.clone();
    let [one, other] = [(); 2].map(|()| Breakers::shared(world.runtime.clone()));
    fail(&one, &away(), &clock).await;
    clock.advance(second());
    assert!(admit(&other, &away(), &clock).await.is_none());
    let rows = world.runtime.slots().breakers().read(&[away()]).await.unwrap();
    assert_eq!((rows[0].key.kind, rows[0].key.name.as_str()), (BreakerKind::Host, "away.example:443"));
    assert!(rows[0].message.ends_with("connection refused"), "{}", rows[0].message);
    world.runtime.slots().breakers().reset(TenantId::DEFAULT, rows[0].id).await.unwrap().unwrap();
    clock.advance(second());
    for breakers in [&one, &other] {
        assert!(admit(breakers, &away(), &clock).await.is_some());
    }
}

#[tokio::test]
async fn the_number_of_servers_is_limited() {
    let (breakers, clock) = (Breakers::default(), ManualClock::at("2026-01-01T00:00:00Z"));
    fail(&breakers, &away(), &clock).await;
    for port in 1..=20_000 {
        breakers.with(&key(TenantId::DEFAULT, &format!("http://many.example:{port}")), Server::failed);
    }
    assert!(breakers.lock().len() <= MAX_SERVERS);
    assert_eq!(breakers.open().len(), 1, "an open one stays");
}

#[test]
fn open_breakers_are_limited_too_and_those_that_end_last_stay() {
    let breakers = Breakers::default();
    let since = ManualClock::at("2026-01-01T00:00:00Z").now();
    let port = |number: usize| key(TenantId::DEFAULT, &format!("http://many.example:{number}"));
    for number in 1..=MAX_SERVERS + 1 {
        let until = since + second() * number as i32;
        let open = model::Opening { since, until, pause_seconds: 5, probing: false };
        breakers.with(&port(number), |server| server.decide_alone(Some(open)));
    }
    assert_eq!(breakers.lock().len(), MAX_SERVERS / 2 + 1);
    assert!(breakers.with(&port(MAX_SERVERS), |server| server.open.is_some()));
    assert!(breakers.with(&port(1), |server| server.open.is_none()), "its time is over first");
    assert!(breakers.lock().len() > MAX_SERVERS / 4, "most stay until it is full again");
}

#[tokio::test]
async fn servers_that_respond_are_not_remembered() {
    let (breakers, clock) = (Breakers::default(), ManualClock::at("2026-01-01T00:00:00Z"));
    admit(&breakers, &away(), &clock).await.unwrap().finish(Outcome::Responded).await;
    assert!(breakers.lock().is_empty());
}

#[tokio::test]
async fn while_all_breakers_are_closed_a_process_reads_once_a_second() {
    let world = World::at("2026-01-01T00:00:00Z");
    let clock = world.clock.clone();
    let breakers = Arc::new(Breakers::shared(world.runtime.clone()));
    let mut reads = std::collections::BTreeSet::new();
    for _ in 0..40 {
        admit(&breakers, &away(), &clock).await.unwrap().finish(Outcome::Responded).await;
        reads.insert(*breakers.shared.as_ref().unwrap().read_at.lock().await);
        clock.advance(TimeDelta::milliseconds(100));
    }
    assert_eq!(reads.len(), 4, "four seconds");
}

/// Starts a server that always responds so. Returns its address.
async fn server(status: u16, retry_after: Option<&'static str>) -> String {
    let respond = move || async move {
        let status = StatusCode::from_u16(status).unwrap();
        match retry_after {
            Some(wait) => (status, [(header::RETRY_AFTER, wait)]).into_response(),
            None => status.into_response(),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(respond))).await });
    address
}

#[tokio::test]
async fn a_server_that_limits_its_callers_is_called_less_often_and_never_blocked() {
    for (status, retry_after, waits) in [
        (429, None, 1),
        (429, Some("7"), 7),
        (503, Some("7"), 7),
        (429, Some("Thu, 01 Jan 2026 00:00:20 GMT"), 20),
        (429, Some("nonsense"), 1),
        (429, Some("3600"), 3_600),
    ] {
        let url = server(status, retry_after).await;
        let bench = Bench::new("http", json!({ "url": url }));
        let failure = bench.run().await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Transient, "the usual rule decides about a retry");
        assert_eq!(failure.retry_after_seconds, Some(waits), "{status} {retry_after:?}");
        let (breakers, target) = (&bench.context.breakers, key(bench.job.tenant, &url));
        let wait = second() * (waits.min(60) as i32);
        bench.clock.advance(wait - TimeDelta::milliseconds(1));
        assert!(admit(breakers, &target, &bench.clock).await.is_none(), "{status} {retry_after:?}");
        bench.clock.advance(TimeDelta::milliseconds(1));
        assert!(admit(breakers, &target, &bench.clock).await.is_some(), "{status} {retry_after:?}");
        for _ in 0..2 * HOST_FAILURES {
            bench.clock.advance(second() * 60);
            bench.run().await.unwrap_err();
        }
        assert_eq!(breakers.open(), [], "{status} {retry_after:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_unavailable_without_saying_for_how_long_is_broken() {
    let bench = Bench::new("http", json!({ "url": server(503, None).await }));
    for _ in 0..HOST_FAILURES {
        assert_eq!(bench.run().await.unwrap_err().retry_after_seconds, None);
    }
    assert_eq!(bench.context.breakers.open().len(), 1);
}
