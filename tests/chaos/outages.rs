//! Half a minute without Postgres, and half a minute without the bus, under load.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use model::{Instant, RunId, RunState, TenantId};
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};
use store::Runs;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cluster::{Cluster, now, pause};
use crate::ledger;

const AWAY_FOR: TimeDelta = TimeDelta::seconds(30);

/// So long of that, Postgres is there and does not answer.
const FROZEN_FOR: TimeDelta = TimeDelta::seconds(15);

/// So long the emulator takes no message and refuses none: longer than anyone tries to publish at a time.
const STANDS_STILL_FOR: TimeDelta = TimeDelta::seconds(12);

/// After a return, work resumes by itself, and whatever the outage caught ends within this: an attempt may wait for its
/// deadline on the bus, and a run whose commit went unnoticed for the recheck that finds lost messages.
const ENDS_WITHIN: TimeDelta = TimeDelta::minutes(5);

/// The API gives up after 30 s, whatever is away; the rest is for a busy machine.
const ANSWERED_WITHIN: TimeDelta = TimeDelta::seconds(60);

/// What was answered to somebody who asks for a run, or whether a function can work.
#[derive(Debug)]
struct Answer {
    asked_at: Instant,
    took: TimeDelta,
    status: u16,
    says_when: bool,
    run: Option<RunId>,
}

/// People who ask for runs and for how things are, and never wait for longer than it takes.
struct Load {
    stop: CancellationToken,
    people: Vec<JoinHandle<Vec<Answer>>>,
}

impl Load {
    fn on(cluster: &Cluster, pace: TimeDelta) -> Self {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(120)).build().unwrap();
        let stop = CancellationToken::new();
        let (starts, token) = cluster.api();
        let body: Arc<Value> = Arc::new(json!({"inputs": {"mark": cluster.mark}}));
        let start = |url: String| {
            let (client, token, body) = (client.clone(), token.clone(), body.clone());
            move || {
                let key = Uuid::now_v7().to_string();
                client.post(&url).bearer_auth(&token).header("Idempotency-Key", key).json(&*body)
            }
        };
        let look = |url: String| {
            let client = client.clone();
            move || client.get(&url)
        };
        let mut people = Vec::new();
        for url in starts.into_iter().flat_map(|url| [url.clone(), url]) {
            people.push(tokio::spawn(ask(start(url), pace, stop.clone())));
        }
        for url in cluster.ready_urls() {
            people.push(tokio::spawn(ask(look(url), pace, stop.clone())));
        }
        Self { stop, people }
    }

    async fn end(self) -> Vec<Answer> {
        self.stop.cancel();
        let mut answers = Vec::new();
        for person in self.people {
            answers.extend(person.await.unwrap());
        }
        answers
    }
}

/// Asks again and again, so long after each answer.
async fn ask(
    request: impl Fn() -> reqwest::RequestBuilder,
    pace: TimeDelta,
    stop: CancellationToken,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !stop.is_cancelled() {
        let asked_at = now();
        let answer = match request().send().await {
            Ok(answer) => {
                let (status, says_when) =
                    (answer.status().as_u16(), answer.headers().contains_key(RETRY_AFTER));
                let body: Value = answer.json().await.unwrap_or_default();
                let run = body["id"].as_str().filter(|_| status == 201).map(|id| RunId(id.parse().unwrap()));
                Answer { asked_at, took: now() - asked_at, status, says_when, run }
            }
            Err(_) => Answer { asked_at, took: now() - asked_at, status: 0, says_when: false, run: None },
        };
        answers.push(answer);
        pause(pace).await;
    }
    answers
}

/// Everybody was answered in time: with what they asked for, or that they shall come again.
fn assert_all_were_answered(answers: &[Answer]) {
    for answer in answers {
        let retryable = answer.status == 503 && answer.says_when;
        assert!(matches!(answer.status, 200 | 201) || retryable, "{answer:?}");
        assert!(answer.took < ANSWERED_WITHIN, "{answer:?}");
    }
}

/// How long after its return the first task succeeded and the first run ended.
async fn resumed_after(cluster: &mut Cluster, back: Instant) -> TimeDelta {
    loop {
        cluster.tick().await;
        if let Some(first) = ledger::first_end_since(&cluster.postgres.url, back).await {
            return first - back;
        }
        assert!(now() < back + ENDS_WITHIN, "nothing went on");
        pause(TimeDelta::milliseconds(100)).await;
    }
}

/// Every run that there is ends well by itself, those that were accepted are there, and each success is there once.
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
    assert!(cluster.all_live(), "no process had to be started again");
    let accepted: Vec<RunId> = answers.iter().filter_map(|answer| answer.run).collect();
    assert!(accepted.iter().all(|run| runs.contains(run)), "an accepted run is missing");
    for run in &runs {
        let record = cluster.store.run(TenantId::DEFAULT, *run).await.unwrap().unwrap();
        assert_eq!(record.run.state, RunState::Succeeded);
        ledger::tells_a_sound_story(cluster, &record).await;
    }
    cluster.calm_down().await;
    ledger::nothing_is_left_over(cluster).await;
    accepted.len()
}

/// Each in a cluster of its own, at the same time, since most of it is waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_minute_without_postgres_or_the_bus_costs_nothing_and_work_resumes_by_itself() {
    let (one, other) = tokio::join!(Cluster::start(), Cluster::start());
    tokio::join!(stay_without_postgres(one), stay_without_the_bus(other, AWAY_FOR));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emulator_that_stands_still_costs_nothing_and_work_resumes_by_itself() {
    if let Some(cluster) = Cluster::start_on_google().await {
        stay_without_the_bus(cluster, STANDS_STILL_FOR).await;
    }
}

async fn stay_without_postgres(mut cluster: Cluster) {
    let load = Load::on(&cluster, TimeDelta::milliseconds(300));
    pause(TimeDelta::seconds(2)).await;
    let away = now();
    cluster.postgres.freeze_for(FROZEN_FOR).await;
    cluster.postgres.kill();
    pause(away + AWAY_FOR - now()).await;
    cluster.postgres.restart().await;
    let back = now();
    let resumed = resumed_after(&mut cluster, back).await;
    let answers = load.end().await;
    assert_all_were_answered(&answers);
    let while_away = |answer: &&Answer| away < answer.asked_at && answer.asked_at + answer.took < back;
    let refused = answers.iter().filter(while_away).filter(|answer| answer.status == 503).count();
    assert!(refused > 0, "whoever asked meanwhile was told to come again");
    let accepted = assert_nothing_was_lost(&mut cluster, &answers, back).await;
    println!(
        "{accepted} runs, {refused} refusals; resumed {} ms after its return",
        resumed.num_milliseconds()
    );
}

async fn stay_without_the_bus(mut cluster: Cluster, away_for: TimeDelta) {
    let load = Load::on(&cluster, TimeDelta::seconds(2));
    pause(TimeDelta::seconds(2)).await;
    cluster.hub.leave();
    let away = now();
    pause(away_for).await;
    cluster.hub.come_back().await;
    let back = now();
    let resumed = resumed_after(&mut cluster, back).await;
    let answers = load.end().await;
    assert_all_were_answered(&answers);
    let while_away = |answer: &&Answer| away < answer.asked_at && answer.asked_at + answer.took < back;
    let accepted_meanwhile = answers.iter().filter(while_away).filter(|answer| answer.run.is_some()).count();
    assert!(accepted_meanwhile > 0, "runs are accepted without the bus");
    let accepted = assert_nothing_was_lost(&mut cluster, &answers, back).await;
    println!(
        "{accepted} runs, {accepted_meanwhile} of them meanwhile; resumed {} ms after its return",
        resumed.num_milliseconds()
    );
}
