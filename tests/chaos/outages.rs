//! Half a minute without Postgres, and half a minute without the bus, under load.

use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use model::{Instant, RunId, RunState, TenantId};
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};
use store::Runs;
use testkit::{DEADLINE, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cluster::{Cluster, now, pause};
use crate::ledger;

const OUTAGE: TimeDelta = TimeDelta::seconds(30);

/// For this part of the outage, Postgres accepts connections and does not answer.
const FROZEN: TimeDelta = TimeDelta::seconds(15);

/// The emulator accepts and rejects no message for this long: longer than a single try to publish.
const EMULATOR_OUTAGE: TimeDelta = TimeDelta::seconds(12);

/// Runs that have not ended by then hang. An attempt may wait for its deadline on the bus, and a run whose commit went
/// unnoticed for the recheck that finds lost messages.
const ENDS_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// The answer to a request for a run, or to the question whether a function is ready.
#[derive(Clone, Debug)]
struct Answer {
    requested_at: Instant,
    /// Zero if there was no answer.
    status: u16,
    has_retry_after: bool,
    run: Option<RunId>,
}

/// Clients that start runs and ask functions whether they are ready.
struct Load {
    stop: CancellationToken,
    clients: Vec<JoinHandle<()>>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Load {
    fn on(cluster: &Cluster, pace: TimeDelta) -> Self {
        let client = reqwest::Client::builder().timeout(DEADLINE).build().unwrap();
        let (stop, answers) = (CancellationToken::new(), Arc::default());
        let (starts, token) = cluster.api();
        let body: Arc<Value> = Arc::new(json!({"inputs": {"mark": cluster.mark}}));
        let start = |url: String| {
            let (client, token, body) = (client.clone(), token.clone(), body.clone());
            move || {
                let key = Uuid::now_v7().to_string();
                client.post(&url).bearer_auth(&token).header("Idempotency-Key", key).json(&*body)
            }
        };
        let ready = |url: String| {
            let client = client.clone();
            move || client.get(&url)
        };
        let mut load = Self { stop, clients: Vec::new(), answers };
        for url in starts.into_iter().flat_map(|url| [url.clone(), url]) {
            load.add(start(url), pace);
        }
        for url in cluster.ready_urls() {
            load.add(ready(url), pace);
        }
        load
    }

    /// Adds a client that sends a request, waits for the answer, pauses, and sends the next one.
    fn add(&mut self, request: impl Fn() -> reqwest::RequestBuilder + Send + 'static, pace: TimeDelta) {
        let (stop, answers) = (self.stop.clone(), self.answers.clone());
        self.clients.push(tokio::spawn(async move {
            while !stop.is_cancelled() {
                let answer = send(request()).await;
                answers.lock().unwrap().push(answer);
                pause(pace).await;
            }
        }));
    }

    /// Waits for the answer to a request that was sent since an instant.
    async fn answered(&self, since: Instant, what: &str, fits: impl Fn(&Answer) -> bool) {
        eventually(what, async || {
            let answers = self.answers.lock().unwrap();
            answers.iter().any(|answer| since < answer.requested_at && fits(answer)).then_some(())
        })
        .await;
    }

    /// Stops all clients. Returns the answers.
    async fn end(self) -> Vec<Answer> {
        self.stop.cancel();
        for client in self.clients {
            client.await.unwrap();
        }
        self.answers.lock().unwrap().clone()
    }
}

async fn send(request: reqwest::RequestBuilder) -> Answer {
    let requested_at = now();
    let Ok(answer) = request.send().await else {
        return Answer { requested_at, status: 0, has_retry_after: false, run: None };
    };
    let (status, has_retry_after) = (answer.status().as_u16(), answer.headers().contains_key(RETRY_AFTER));
    let body: Value = answer.json().await.unwrap_or_default();
    let run = body["id"].as_str().filter(|_| status == 201).map(|id| RunId(id.parse().unwrap()));
    Answer { requested_at, status, has_retry_after, run }
}

/// Every request was answered: with success, or with when to retry.
fn assert_all_were_answered(answers: &[Answer]) {
    for answer in answers {
        let retryable = answer.status == 503 && answer.has_retry_after;
        assert!(matches!(answer.status, 200 | 201) || retryable, "{answer:?}");
    }
}

/// How long after the outage the first task succeeded or the first run ended.
async fn resumed_after(cluster: &mut Cluster, back: Instant) -> TimeDelta {
    loop {
        cluster.tick().await;
        if let Some(first) = ledger::first_end_since(&cluster.postgres.url, back).await {
            return first - back;
        }
        assert!(now() < back + ENDS_WITHIN, "no run continued");
        pause(TimeDelta::milliseconds(100)).await;
    }
}

/// Every run ends by itself, every accepted run exists, and each success is recorded once. Returns the number of accepted
/// runs.
async fn assert_nothing_was_lost(cluster: &mut Cluster, answers: &[Answer], back: Instant) -> usize {
    let runs = loop {
        let (open, ended) = ledger::runs(&cluster.postgres.url).await;
        if open.is_empty() {
            break ended;
        }
        assert!(now() < back + ENDS_WITHIN, "{} runs have not ended: {open:?}", open.len());
        cluster.tick().await;
        pause(TimeDelta::milliseconds(500)).await;
    };
    assert!(cluster.all_live(), "a process has died");
    let accepted: Vec<RunId> = answers.iter().filter_map(|answer| answer.run).collect();
    assert!(accepted.iter().all(|run| runs.contains(run)), "an accepted run is missing");
    for run in &runs {
        let record = cluster.store.run(TenantId::DEFAULT, *run).await.unwrap().unwrap();
        assert_eq!(record.run.state, RunState::Succeeded);
        ledger::assert_consistent(cluster, &record).await;
    }
    cluster.finish_all_runs().await;
    ledger::assert_nothing_is_left_over(cluster).await;
    accepted.len()
}

/// Each outage has its own cluster. They run at the same time, since most of it is waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_minute_without_postgres_or_the_bus_loses_nothing_and_work_resumes_by_itself() {
    let (one, other) = tokio::join!(Cluster::start(), Cluster::start());
    tokio::join!(survive_without_postgres(one), survive_without_the_bus(other, OUTAGE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_emulator_loses_nothing_and_work_resumes_by_itself() {
    if let Some(cluster) = Cluster::start_on_google().await {
        survive_without_the_bus(cluster, EMULATOR_OUTAGE).await;
    }
}

async fn survive_without_postgres(mut cluster: Cluster) {
    let load = Load::on(&cluster, TimeDelta::milliseconds(300));
    load.answered(Instant::MIN_UTC, "a run is accepted", |answer| answer.run.is_some()).await;
    let away = now();
    cluster.postgres.freeze_for(FROZEN).await;
    cluster.postgres.kill();
    pause(away + OUTAGE - now()).await;
    load.answered(away, "a request is refused without Postgres", |answer| answer.status == 503).await;
    cluster.postgres.restart().await;
    let back = now();
    let resumed = resumed_after(&mut cluster, back).await;
    let answers = load.end().await;
    assert_all_were_answered(&answers);
    let accepted = assert_nothing_was_lost(&mut cluster, &answers, back).await;
    println!("Postgres: {accepted} runs; resumed after {} ms", resumed.num_milliseconds());
}

async fn survive_without_the_bus(mut cluster: Cluster, outage: TimeDelta) {
    let load = Load::on(&cluster, TimeDelta::seconds(2));
    load.answered(Instant::MIN_UTC, "a run is accepted", |answer| answer.run.is_some()).await;
    cluster.hub.make_unavailable();
    let away = now();
    pause(outage).await;
    load.answered(away, "a run is accepted without the bus", |answer| answer.run.is_some()).await;
    cluster.hub.make_available().await;
    let back = now();
    let resumed = resumed_after(&mut cluster, back).await;
    let answers = load.end().await;
    assert_all_were_answered(&answers);
    let accepted = assert_nothing_was_lost(&mut cluster, &answers, back).await;
    println!("bus: {accepted} runs; resumed after {} ms", resumed.num_milliseconds());
}
