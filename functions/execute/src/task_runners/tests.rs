//! What holds for every task type, and the bench on which the tests of each one perform attempts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use host::EgressPolicy;
use model::{
    Clock, ErrorClass, Failure, Instant, Progress, ProgressReport, Resources, RunId, TaskKind, TenantId,
};
use store::LogLine;
use testkit::ManualClock;

use super::{TaskRunner, TaskRunners, Unfinished};
use crate::job::{Context, Job};
use crate::log::Log;
use crate::sink::{AttemptSink, SinkError};

/// All task types. The servers of tests are on this machine.
fn task_runners() -> TaskRunners {
    TaskRunners::standard().with_egress_policy(EgressPolicy::allow_internal())
}

/// One attempt, ready to be performed, with a clock that the test moves.
pub(crate) struct Bench {
    pub(crate) job: Job,
    pub(crate) context: Context,
    pub(crate) clock: ManualClock,
    pub(crate) folder: TempDir,
    kept: Arc<Kept>,
}

impl Bench {
    pub(crate) fn new(kind: &str, config: Value) -> Self {
        let clock = ManualClock::at("2026-01-01T00:00:00Z");
        let (job, kept, folder) = (job(kind, config), Arc::<Kept>::default(), TempDir::new().unwrap());
        let log = Log::open(kept.clone(), Arc::new(clock.clone()), &job);
        let mut context = Context::new(log, CancellationToken::new(), Arc::new(clock.clone()));
        context.scratch = folder.path().to_owned();
        context.scripts = folder.path().to_owned();
        context.environments = folder.path().join("environments");
        Self { job, context, clock, folder, kept }
    }

    pub(crate) async fn run(&self) -> Result<Value, Failure> {
        Ok(task_runners().run(&self.job, &self.context).await?)
    }

    /// Performs the attempt in the background, so that the test can watch and disturb it.
    pub(crate) fn begin(&self) -> tokio::task::JoinHandle<Result<Value, Failure>> {
        let (job, context) = (self.job.clone(), self.context.clone());
        tokio::spawn(async move { Ok(task_runners().run(&job, &context).await?) })
    }

    /// Ends the log and returns its lines as `stream: text`.
    pub(crate) async fn lines(&self) -> Vec<String> {
        self.context.log.finish().await;
        let lines = self.kept.lines.lock().unwrap();
        lines.iter().map(|line| format!("{}: {}", line.stream, line.line)).collect()
    }

    /// Ends the log and returns its lines as `level: text`.
    pub(crate) async fn levels(&self) -> Vec<String> {
        self.context.log.finish().await;
        let lines = self.kept.lines.lock().unwrap();
        lines.iter().map(|line| format!("{}: {}", line.level, line.line)).collect()
    }

    /// Waits until a checkpoint was stored.
    pub(crate) async fn stored(&self) {
        self.kept.stored.notified().await;
    }

    /// Ends the reports and returns what was stored: all progress taken together, and the checkpoints in order.
    pub(crate) async fn reported(&self) -> (Progress, Vec<Value>) {
        self.context.reports.finish().await;
        let mut progress = Progress::new(self.job.attempt, self.clock.now());
        self.kept.reports.lock().unwrap().iter().for_each(|report| progress.apply(report));
        (progress, self.kept.checkpoints.lock().unwrap().clone())
    }
}

#[derive(Default)]
struct Kept {
    lines: Mutex<Vec<LogLine>>,
    reports: Mutex<Vec<ProgressReport>>,
    checkpoints: Mutex<Vec<Value>>,
    stored: Notify,
}

#[async_trait]
impl AttemptSink for Kept {
    async fn save_checkpoint(&self, _: Instant, data: &Value) -> Result<(), SinkError> {
        self.checkpoints.lock().unwrap().push(data.clone());
        self.stored.notify_one();
        Ok(())
    }

    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError> {
        self.reports.lock().unwrap().push(report.clone());
        Ok(())
    }

    async fn append_log(&self, _: u32, lines: &[LogLine]) -> Result<(), SinkError> {
        self.lines.lock().unwrap().extend(lines.iter().cloned());
        Ok(())
    }
}

pub(crate) fn job(kind: &str, config: Value) -> Job {
    Job {
        tenant: TenantId::DEFAULT,
        run: RunId(Uuid::from_u128(7)),
        attempt: 2,
        workflow: "nightly".to_owned(),
        task: "load".to_owned(),
        kind: TaskKind::named(kind).unwrap(),
        config,
        document: json!({"inputs": {"day": "2026-01-01"}, "outputs": {}, "task": {"name": "load", "attempt": 2}}),
        timeout: Duration::from_secs(60),
        resources: Resources::default(),
        network: None,
    }
}

async fn failure_of(kind: &str, config: Value) -> Failure {
    Bench::new(kind, config).run().await.unwrap_err()
}

#[tokio::test]
async fn noop_returns_null_and_echo_its_config() {
    assert_eq!(Bench::new("noop", json!({})).run().await, Ok(Value::Null));
    assert_eq!(Bench::new("echo", json!({"a": [1, "x"]})).run().await, Ok(json!({"a": [1, "x"]})));
}

#[tokio::test]
async fn fail_fails_with_its_message_and_class() {
    let failure = failure_of("fail", json!({"message": "no such table", "class": "permanent"})).await;
    assert_eq!(failure, Failure::permanent("no such table"));
}

#[tokio::test]
async fn flaky_fails_the_same_attempts_for_the_same_seed() {
    let mut bench = Bench::new("flaky", json!({"probability": 0.5, "seed": 42}));
    let mut outcomes = Vec::new();
    for attempt in 1..=40 {
        bench.job.attempt = attempt;
        let first = bench.run().await;
        assert_eq!(bench.run().await, first);
        outcomes.push(first.map_err(|failure| failure.class));
    }
    assert!(outcomes.contains(&Ok(Value::Null)) && outcomes.contains(&Err(ErrorClass::Transient)));
}

#[tokio::test]
async fn flaky_without_a_seed_fails_a_fifth_of_all_runs() {
    let mut bench = Bench::new("flaky", json!({}));
    let mut failures = 0;
    for run in 0..2_000 {
        bench.job.run = RunId(Uuid::from_u128(run));
        failures += u32::from(bench.run().await.is_err());
    }
    assert!((340..460).contains(&failures), "{failures} of 2000");
}

#[tokio::test]
async fn a_worker_refuses_engine_tasks() {
    let failure = failure_of("sleep", json!({"duration": "1s"})).await;
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert_eq!(failure.message, "workers do not run engine tasks such as `sleep`");
}

#[tokio::test]
async fn a_service_without_user_code_refuses_it_and_says_what_to_use() {
    let runners = task_runners().without_user_code();
    for kind in ["bash", "python"] {
        let bench = Bench::new(kind, json!({"command": "true"}));
        let failure = Failure::from(runners.run(&bench.job, &bench.context).await.unwrap_err());
        assert_eq!(failure.class, ErrorClass::Permanent);
        let says = [kind, "ebb worker", "EBB_USER_CODE"];
        assert!(says.iter().all(|word| failure.message.contains(word)), "{}", failure.message);
    }
    let echo = Bench::new("echo", json!(1));
    assert_eq!(runners.run(&echo.job, &echo.context).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_config_that_does_not_fit_is_a_permanent_failure() {
    let failure = failure_of("flaky", json!({"probability": "often"})).await;
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(
        failure.message.contains("`flaky`") && failure.message.contains("probability"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn an_output_of_more_than_a_mebibyte_is_refused_with_a_way_out() {
    let fits = json!("x".repeat(1024 * 1024 - 2));
    assert_eq!(Bench::new("echo", fits.clone()).run().await, Ok(fits));
    let failure = failure_of("echo", json!("x".repeat(1024 * 1024 - 1))).await;
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("1048577 bytes"), "{}", failure.message);
    assert!(failure.message.contains("store it elsewhere"), "{}", failure.message);
}

#[tokio::test]
async fn a_failure_is_the_last_line_of_the_log_and_shows_no_secret() {
    let bench = Bench::new("fail", json!({"message": "token hunter2 was refused"}));
    bench.context.log.redact(vec!["hunter2".to_owned()]);
    let failure = bench.run().await.unwrap_err();
    assert_eq!(failure.message, "token *** was refused");
    assert_eq!(bench.lines().await, ["system: token *** was refused"]);
}

#[tokio::test]
async fn what_a_program_adds_to_its_failure_shows_no_secret() {
    let command = r#"printf '{"message": "no", "detail": {"token": "hunter2"}}' > "$EBB_FAILURE"; exit 1"#;
    let bench = Bench::new("bash", json!({"command": command}));
    bench.context.log.redact(vec!["hunter2".to_owned()]);
    let failure = bench.run().await.unwrap_err();
    assert_eq!(failure.detail, Some(json!({"token": "***"})));
}

struct OtherNoop;

#[async_trait]
impl TaskRunner for OtherNoop {
    fn kind(&self) -> TaskKind {
        TaskKind::Noop
    }

    async fn run(&self, _: &Job, _: &Context) -> Result<Value, Unfinished> {
        Ok(json!("other"))
    }
}

#[tokio::test]
async fn a_performer_replaces_the_one_of_the_same_type() {
    let bench = Bench::new("noop", json!({}));
    let performed = TaskRunners::standard().with(OtherNoop).run(&bench.job, &bench.context).await;
    assert_eq!(performed, Ok(json!("other")));
}

struct Endless;

#[async_trait]
impl TaskRunner for Endless {
    fn kind(&self) -> TaskKind {
        TaskKind::Noop
    }

    async fn run(&self, _: &Job, context: &Context) -> Result<Value, Unfinished> {
        context.cancel.cancelled().await;
        Err(Unfinished::Stopped)
    }
}

#[tokio::test]
async fn a_stopped_attempt_is_recognised_even_where_a_secret_masks_its_message() {
    let bench = Bench::new("noop", json!({}));
    bench.context.log.redact(vec!["stopped before".into()]);
    bench.context.cancel.cancel();
    let performed = TaskRunners::standard().with(Endless).run(&bench.job, &bench.context).await;
    assert_eq!(performed, Err(Unfinished::Stopped));
}

#[test]
fn a_worker_has_a_runner_for_every_type_but_engine_tasks() {
    let runners = TaskRunners::standard();
    for kind in TaskKind::ALL {
        assert_eq!(runners.0.contains_key(kind), !kind.is_engine_task(), "{kind}");
    }
}
