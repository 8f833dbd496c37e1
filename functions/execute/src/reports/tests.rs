use async_trait::async_trait;
use model::Instant;
use serde_json::json;
use store::LogLine;
use testkit::{ManualClock, run_others};
use tokio::sync::mpsc;

use super::*;
use crate::task_runners::tests::job;

/// A sink that reports each write to the test, and fails the first ones.
struct Received {
    writes: mpsc::UnboundedSender<String>,
    failures: Mutex<Vec<SinkError>>,
}

impl Received {
    fn write(&self, what: String) -> Result<(), SinkError> {
        match self.failures.lock().unwrap().pop() {
            Some(error) => {
                self.writes.send(format!("{error} {what}")).unwrap();
                Err(error)
            }
            None => {
                self.writes.send(what).unwrap();
                Ok(())
            }
        }
    }
}

#[async_trait]
impl AttemptSink for Received {
    async fn append_log(&self, _: u32, _: &[LogLine]) -> Result<(), SinkError> {
        Ok(())
    }

    async fn save_checkpoint(&self, _: Instant, data: &Value) -> Result<(), SinkError> {
        self.write(format!("checkpoint {data}"))
    }

    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError> {
        self.write(format!(
            "progress {:?} {:?}",
            report.done.as_ref().map(|done| done.fraction),
            report.metrics
        ))
    }
}

fn open(failures: Vec<SinkError>) -> (Reports, ManualClock, mpsc::UnboundedReceiver<String>) {
    let (writes, written) = mpsc::unbounded_channel();
    let clock = ManualClock::at("2026-01-01T00:00:00Z");
    let sink = Received { writes, failures: Mutex::new(failures) };
    let log = Log::open(Arc::new(sink), Arc::new(clock.clone()), &job("noop", Value::Null));
    (log.reports(), clock, written)
}

/// Ends the reports while the time passes.
async fn finish(reports: &Reports, clock: &ManualClock) {
    let reports = reports.clone();
    let finishing = tokio::spawn(async move { reports.finish().await });
    while !finishing.is_finished() {
        run_others().await;
        clock.advance(chrono::Duration::seconds(1));
    }
    finishing.await.unwrap();
}

fn done(fraction: f64) -> Done {
    Done { fraction, message: None }
}

#[tokio::test]
async fn many_reports_are_stored_at_a_bounded_rate_and_the_newest_counts() {
    let (reports, clock, mut written) = open(Vec::new());
    reports.progress(done(0.0));
    assert_eq!(written.recv().await.unwrap(), "progress Some(0.0) {}", "the first one does not wait");
    for number in 1..=10_000 {
        reports.progress(done(f64::from(number) / 10_000.0));
        reports.metric("rows", f64::from(number));
        reports.checkpoint(json!(number));
    }
    clock.advance(chrono::Duration::from_std(INTERVAL).unwrap());
    assert_eq!(written.recv().await.unwrap(), "checkpoint 10000");
    assert_eq!(written.recv().await.unwrap(), "progress Some(1.0) {\"rows\": 10000.0}");
    reports.metric("rows", 1.0);
    reports.finish().await;
    assert_eq!(written.recv().await.unwrap(), "progress None {\"rows\": 1.0}", "the last one is not lost");
    reports.checkpoint(json!("late"));
    reports.finish().await;
    drop(reports);
    assert_eq!(written.recv().await, None);
}

#[tokio::test]
async fn a_report_that_could_not_be_stored_is_retried_unless_there_is_a_newer_one() {
    let away = || SinkError::Unavailable("away".to_owned());
    let (reports, clock, mut written) = open(vec![away(), away()]);
    reports.metric("a", 1.0);
    assert_eq!(written.recv().await.unwrap(), "away progress None {\"a\": 1.0}");
    reports.metric("b", 2.0);
    reports.metric("a", 3.0);
    clock.advance(chrono::Duration::from_std(INTERVAL).unwrap());
    assert_eq!(written.recv().await.unwrap(), "away progress None {\"a\": 3.0, \"b\": 2.0}");
    reports.finish().await;
    assert_eq!(written.recv().await.unwrap(), "progress None {\"a\": 3.0, \"b\": 2.0}");
}

#[tokio::test]
async fn a_store_that_stays_away_or_refuses_does_not_hold_up_an_attempt() {
    let away = || SinkError::Unavailable("away".to_owned());
    let (reports, clock, mut written) = open(vec![away(); 100]);
    reports.checkpoint(json!(1));
    finish(&reports, &clock).await;
    drop(reports);
    let mut tries = 0;
    while written.recv().await.is_some() {
        tries += 1;
    }
    assert!((1..=1 + MAX_LAST_TRIES).contains(&tries), "{tries}");
    let (reports, _, mut written) = open(vec![SinkError::Refused("no".to_owned())]);
    reports.checkpoint(json!(1));
    reports.finish().await;
    drop(reports);
    assert_eq!((written.recv().await.as_deref(), written.recv().await), (Some("no checkpoint 1"), None));
}

#[tokio::test]
async fn the_last_reports_wait_for_a_server_that_restarts() {
    let away = || SinkError::Unavailable("away".to_owned());
    let (reports, clock, mut written) = open(vec![away(); 5]);
    reports.checkpoint(json!(1));
    assert_eq!(written.recv().await.unwrap(), "away checkpoint 1");
    let closing_since = clock.now();
    finish(&reports, &clock).await;
    for _ in 1..MAX_LAST_TRIES {
        assert_eq!(written.recv().await.unwrap(), "away checkpoint 1");
    }
    assert_eq!(written.recv().await.unwrap(), "checkpoint 1");
    assert!(clock.now() - closing_since >= chrono::Duration::seconds(14));
}

#[test]
fn metrics_that_could_not_be_stored_do_not_exceed_the_limit() {
    fn metrics(prefix: &str) -> BTreeMap<String, f64> {
        (0..MAX_METRICS).map(|number| (format!("{prefix}{number}"), 1.0)).collect()
    }
    let (reports, _clock, _written) = open(Vec::new());
    let writer = &reports.0.writer;
    writer.pending().metrics = metrics("new");
    writer.restore(Pending { metrics: metrics("old"), ..Pending::default() });
    assert_eq!(writer.pending().metrics, metrics("new"));
}
