//! Runs attempts with what a worker has of task runners, folders and containment. It needs neither a store nor a bus.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::FutureExt;
use host::config::UserCode;
use host::{EgressPolicy, Secrets};
use metrics::{counter, histogram};
use model::{Clock, ErrorClass, Failure, TaskKind, TypeName};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limit::AttemptLimit;
use crate::process::Containment;
use crate::task_runners::{Breakers, Exec, TaskRunner, TaskRunners, Unfinished};
use crate::{Context, Job, Log};

/// An attempt's stop signals: first it is asked to stop, then it is killed.
#[derive(Clone, Debug, Default)]
pub struct StopSignals {
    /// Cancelled when it must stop before it is done.
    pub stop: CancellationToken,
    /// Cancelled when there is no time left to stop gracefully.
    pub kill: CancellationToken,
}

/// Runs attempts with task runners, folders and containment.
pub struct Runner {
    clock: Arc<dyn Clock>,
    task_runners: TaskRunners,
    scripts: PathBuf,
    scratch: PathBuf,
    pub(crate) secrets: Secrets,
    pub(crate) egress: EgressPolicy,
    limit: AttemptLimit,
    containment: Option<Containment>,
}

impl Runner {
    /// Runs the built-in task types. Script paths are relative to `scripts`.
    pub fn new(clock: Arc<dyn Clock>, scripts: impl Into<PathBuf>) -> Self {
        Self {
            clock,
            task_runners: TaskRunners::standard(),
            scripts: scripts.into(),
            scratch: std::env::temp_dir(),
            secrets: Secrets::default(),
            egress: EgressPolicy::default(),
            limit: AttemptLimit::default(),
            containment: None,
        }
    }

    /// Uses other task runners.
    pub fn with_task_runners(self, task_runners: TaskRunners) -> Self {
        Self { task_runners, ..self }
    }

    /// Runs the tasks of one more type.
    pub fn with_task_runner(self, runner: impl TaskRunner + 'static) -> Self {
        Self { task_runners: self.task_runners.with(runner), ..self }
    }

    /// Runs the tasks of custom types with these programs.
    ///
    /// # Errors
    /// If one of them cannot be executed.
    pub fn with_programs(self, programs: &[(TypeName, PathBuf)]) -> Result<Self, String> {
        programs.iter().try_fold(self, |runner, (name, program)| {
            Ok(runner.with_task_runner(Exec::new(name.clone(), program)?))
        })
    }

    /// The task types that it runs.
    pub fn kinds(&self) -> impl Iterator<Item = TaskKind> {
        self.task_runners.kinds()
    }

    /// Whether the code of users may run.
    pub fn with_user_code(self, user_code: UserCode) -> Self {
        match user_code {
            UserCode::Allow => self,
            UserCode::Deny => Self { task_runners: self.task_runners.without_user_code(), ..self },
        }
    }

    /// Contains the programs of tasks.
    pub fn with_containment(self, containment: Option<Containment>) -> Self {
        Self { containment, ..self }
    }

    /// Ends attempts that take longer.
    pub fn with_attempt_limit(self, longest: Option<Duration>) -> Self {
        Self { limit: AttemptLimit(longest), ..self }
    }

    /// Creates the scratch directories of programs in this folder.
    pub fn with_scratch(self, scratch: PathBuf) -> Self {
        Self { scratch, ..self }
    }

    /// Resolves secrets from these sources.
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Resolves secrets from the files of a folder, too.
    pub fn with_secrets_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { secrets: self.secrets.with_folder(folder.into()), ..self }
    }

    /// Applies an egress policy; the default allows no internal address.
    pub fn with_egress_policy(self, egress: EgressPolicy) -> Self {
        let task_runners = self.task_runners.with_egress_policy(egress.clone());
        Self { task_runners, egress, ..self }
    }

    /// Runs one attempt to its end: its output, or why there is none. Its log and its reports are complete afterwards.
    pub async fn run(
        &self,
        job: Job,
        log: Log,
        signals: StopSignals,
        breakers: Arc<Breakers>,
    ) -> Result<Value, Unfinished> {
        let started_at = self.clock.now();
        let timeout = job.timeout;
        let job = Job { timeout: self.limit.cap(timeout), ..job };
        let context = Context {
            kill: signals.kill,
            scratch: self.scratch.clone(),
            scripts: self.scripts.clone(),
            containment: self.containment.clone(),
            breakers,
            grace: self.limit.grace(Context::DEFAULT_GRACE),
            ..Context::new(log.clone(), signals.stop, self.clock.clone())
        };
        let result = AssertUnwindSafe(self.task_runners.run(&job, &context)).catch_unwind().await;
        let result = result.unwrap_or_else(|_| Err(Failure::transient("the task type panicked").into()));
        let result = result.map_err(|unfinished| self.limit.explain(timeout, unfinished));
        context.reports.finish().await;
        log.finish().await;
        count(&job.kind, &result, self.clock.now() - started_at);
        result
    }
}

fn count(kind: &TaskKind, result: &Result<Value, Unfinished>, took: TimeDelta) {
    let outcome = match result {
        Ok(_) => "succeeded",
        Err(Unfinished::Stopped) => ErrorClass::Killed.name(),
        Err(Unfinished::Failed(failure)) => failure.class.name(),
    };
    let labels = [("kind", kind.label()), ("outcome", outcome)];
    counter!("ebbflow_attempts_total", &labels).increment(1);
    histogram!("ebbflow_attempt_seconds", "kind" => kind.label()).record(took.as_seconds_f64());
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use engine::retry::{Choice, choose};
    use model::{Instant, RetryPolicy, RunId, Task, TaskIndex, TaskKey, TaskSpec};
    use serde_json::json;
    use testkit::ManualClock;
    use uuid::Uuid;

    use super::*;
    use crate::task_runners::tests::Bench;

    /// A task that takes as long as it may. It fails unless its process would have `grace` to stop.
    struct Endless {
        clock: ManualClock,
        grace: Duration,
    }

    #[async_trait]
    impl TaskRunner for Endless {
        fn kind(&self) -> TaskKind {
            TaskKind::Noop
        }

        async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
            assert_eq!(context.grace, self.grace);
            // Its timeout counts from its first turn on.
            tokio::task::yield_now().await;
            self.clock.advance(TimeDelta::from_std(job.timeout).unwrap());
            context.cancel.cancelled().await;
            Err(Unfinished::Stopped)
        }
    }

    /// How an attempt with a timeout of an hour fails at a worker with this limit.
    async fn failure(limit: Option<Duration>, grace: Duration) -> Failure {
        let mut bench = Bench::new("noop", json!({}));
        bench.job.timeout = Duration::from_secs(3_600);
        let runner = Runner::new(Arc::new(bench.clock.clone()), ".")
            .with_attempt_limit(limit)
            .with_task_runner(Endless { clock: bench.clock.clone(), grace });
        let (job, log) = (bench.job.clone(), bench.context.log.clone());
        runner.run(job, log, StopSignals::default(), Arc::default()).await.unwrap_err().into()
    }

    /// Whether another attempt follows, of four.
    fn is_retried(failure: &Failure) -> bool {
        let retry = RetryPolicy { max_retries: 3, ..RetryPolicy::default() };
        let spec = TaskSpec { retry, ..TaskSpec::default() };
        let key = TaskKey { run: RunId(Uuid::nil()), task: TaskIndex(0) };
        let task = Task { attempt: 1, ..Task::pending(key.task, Instant::UNIX_EPOCH) };
        matches!(choose(&spec, key, &task, failure), Choice::Retry { .. })
    }

    #[tokio::test]
    async fn an_attempt_that_the_platform_would_end_says_what_to_use_and_is_not_retried() {
        let ended = failure(Some(Duration::from_secs(1)), Duration::from_secs(10)).await;
        for part in ["longer than 1 s", "split the task", "wait_for_signal", "a queue of the kind `pool`"] {
            assert!(ended.message.contains(part), "{part}: {ended:?}");
        }
        assert!(!is_retried(&ended), "{ended:?}");
    }

    #[tokio::test]
    async fn an_attempt_that_ends_at_its_own_timeout_is_retried() {
        for limit in [None, Some(Duration::from_secs(7_200))] {
            let grace = limit.map_or(Context::DEFAULT_GRACE, |_| Duration::from_secs(10));
            let ended = failure(limit, grace).await;
            assert!(ended.message.contains("timeout_seconds of 3600"), "{ended:?}");
            assert!(ended.class == ErrorClass::Timeout && is_retried(&ended), "{ended:?}");
        }
    }
}
