//! `ebb task run`: runs one task here, as a worker would, without a server.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::tasks::OutputView;
use api::views::{ProgressView, RunView};
use async_trait::async_trait;
use bus::SystemClock;
use engine::Graph;
use execute::{AttemptSink, Job, Log, Runner, SinkError, StopSignals, Unfinished};
use host::config::{ContainmentConfig, Environment};
use host::{EgressPolicy, Secrets};
use language::TypeChecks;
use language::template::{Item, RunFacts, Scope, TaskFacts};
use language::types::TaskType;
use model::{
    Child, Clock, Failure, Instant, Progress, ProgressReport, RunId, TaskIndex, TenantId, TenantName,
};
use serde_json::{Map, Value};
use store::LogLine;
use uuid::Uuid;

use super::{FAILED, connect, graph, trigger};
use crate::args::{RunTask, Shared};
use crate::client;
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: &RunTask) -> Result<ExitCode> {
    let (definitions, name) = graph::find(&arguments.workflow, &arguments.workflows)?;
    let mut compiled = definitions.compile();
    let found = compiled.definitions.iter().position(|definition| definition.workflow.name == name);
    let Some(at) = found else { return graph::not_found(&compiled, &definitions, &name) };
    let graph = Graph::compile(compiled.definitions.swap_remove(at).workflow)?;
    let attempt = Attempt { shared, arguments, graph: &graph };
    let (job, secrets) = attempt.job().await?;
    let checks = attempt.checks(&job)?;
    let runner = runner(shared, arguments)?;
    let log = Log::open(Arc::new(Printer { attempt: job.attempt }), Arc::new(SystemClock), &job);
    log.redact(secrets);
    let signals = StopSignals::default();
    let stop = signals.stop.clone();
    let interrupted = host::shutdown_signal();
    tokio::spawn(async move {
        interrupted.await;
        stop.cancel();
    });
    let check = |output: Value| match checks.map_or(Ok(()), |checks| checks.check_output(&output)) {
        Ok(()) => Ok(output),
        Err(error) => Err(Failure::permanent(error.to_string()).into()),
    };
    match runner.run(job, log, signals, Arc::default()).await.and_then(check) {
        Ok(value) => {
            output::json(&value)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(unfinished) => {
            report(shared, unfinished)?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn report(shared: &Shared, unfinished: Unfinished) -> Result<()> {
    let failure = Failure::from(unfinished);
    match shared.json {
        true => output::json(&failure)?,
        false => eprintln!("failed ({}): {}", failure.class.name(), failure.message),
    }
    Ok(())
}

/// What runs the task: with the secrets, the containment and the scripts of an `ebb dev`.
fn runner(shared: &Shared, arguments: &RunTask) -> Result<Runner> {
    let environment = Environment::of_process();
    let containment = ContainmentConfig::from_env(&environment).map_err(anyhow::Error::msg)?;
    let egress = EgressPolicy::read(None, Some("0.0.0.0/0,::/0"));
    let egress = egress.map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    Runner::new(Arc::new(SystemClock), folder(arguments))
        .with_secrets(secrets(shared, &environment)?)
        .with_egress_policy(egress)
        .with_containment(execute::containment(&containment))
        .with_programs(&arguments.programs)
        .map_err(anyhow::Error::msg)
}

fn secrets(shared: &Shared, environment: &Environment) -> Result<Secrets> {
    let secrets = Secrets::from_env(environment).map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    Ok(secrets.with_folder(shared.data.join("secrets")))
}

/// The folder of workflows, whose scripts may be used.
fn folder(arguments: &RunTask) -> &Path {
    let file = Some(&arguments.workflow).filter(|path| graph::is_file(path));
    let graphs = file.and_then(|file| file.parent());
    graphs.and_then(Path::parent).unwrap_or(&arguments.workflows)
}

/// An attempt as a worker would be given it.
struct Attempt<'a> {
    shared: &'a Shared,
    arguments: &'a RunTask,
    graph: &'a Graph,
}

impl Attempt<'_> {
    /// The attempt, and the secrets that its config names.
    async fn job(&self) -> Result<(Job, Vec<String>)> {
        let (task, child) = self.task()?;
        let (spec, workflow) = (self.graph.spec_at(task, child), self.graph.workflow());
        let mut scope = self.scope(task, child).await?;
        let (secrets, tenant) =
            (secrets(self.shared, &Environment::of_process())?, TenantName::default_tenant());
        let secrets = secrets.of(&tenant).resolve(runtime::secrets_of(spec)).await;
        scope.secrets = secrets.map_err(|failure| anyhow::anyhow!(failure.message))?;
        let known = scope.secrets.values().filter_map(Value::as_str).map(str::to_owned).collect();
        let mut document = scope.to_json();
        let checkpoint = self.arguments.checkpoint.clone();
        let surroundings = runtime::Surroundings {
            tenant: tenant.as_str(),
            workflow: &workflow.name,
            labels: &Map::new(),
            checkpoint,
        };
        surroundings.add_to(&mut document);
        let job = Job {
            tenant: TenantId::DEFAULT,
            run: self.arguments.outputs_from.unwrap_or(RunId(Uuid::nil())),
            attempt: 1,
            workflow: workflow.name.clone(),
            task: self.graph.name_at(task, child),
            kind: spec.kind.clone(),
            config: TaskType::of(&spec.kind).render(&spec.config, &scope)?,
            document,
            timeout: Duration::from_secs(spec.timeout_seconds.into()),
            resources: spec.resources,
            network: spec.network,
        };
        Ok((job, known))
    }

    /// The schemas of the task's type, if it is a custom one. The settings fit them, as they do for every worker.
    fn checks(&self, job: &Job) -> Result<Option<TypeChecks>> {
        let Some((name, custom)) = self.graph.workflow().custom_type(&job.kind) else { return Ok(None) };
        let checks = TypeChecks::compile(name, custom)
            .map_err(|error| anyhow::anyhow!("the task type `{name}`: {error}"))?;
        checks.check_config(&job.config)?;
        Ok(Some(checks))
    }

    /// The task of that name, or the first child of the fan-out.
    fn task(&self) -> Result<(TaskIndex, Option<Child>)> {
        let RunTask { task: name, item, .. } = self.arguments;
        let Some(task) = self.graph.index_of(name) else {
            let names: Vec<&str> =
                self.graph.workflow().tasks.iter().map(|task| task.name.as_str()).collect();
            bail!("there is no task `{name}`; expected one of {}", names.join(", "));
        };
        match (&self.graph.spec(task).fan_out, item) {
            (Some(_), None) => {
                bail!("`{name}` is a fan-out: name the element that a child is about with --item")
            }
            (None, Some(_)) => bail!("`{name}` is not a fan-out, so it has no --item"),
            (Some(_), Some(_)) => Ok((task, Some(Child { of: task, item: 0 }))),
            (None, None) => Ok((task, None)),
        }
    }

    async fn scope(&self, task: TaskIndex, child: Option<Child>) -> Result<Scope> {
        let Self { shared, arguments, graph } = self;
        let (outputs, earlier) = match arguments.outputs_from {
            Some(run) => self.read_run(&connect(shared)?, run, task).await?,
            None => (arguments.upstream.as_deref().map(read_object).transpose()?.unwrap_or_default(), None),
        };
        let date = arguments.logical_date.or(earlier.as_ref().and_then(|run| run.logical_date));
        let run = RunFacts {
            id: arguments.outputs_from.unwrap_or(RunId(Uuid::nil())).to_string(),
            logical_date: date.unwrap_or_else(|| SystemClock.now()),
            trigger: "local".to_owned(),
            interval: None,
        };
        let mut given = earlier.map(|run| run.inputs).unwrap_or_default();
        let declared = &graph.workflow().inputs;
        given.extend(
            arguments.inputs.iter().map(|(name, text)| (name.clone(), trigger::value(declared, name, text))),
        );
        let scope = Scope {
            outputs,
            run: Some(run),
            task: Some(TaskFacts { name: graph.name_at(task, child), attempt: 1 }),
            item: arguments.item.clone().map(|value| Item { value, index: 0 }),
            ..Scope::default()
        };
        let inputs = language::inputs::bind(graph.workflow(), &given, &scope).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(problems.join("\n"))
        })?;
        Ok(Scope { inputs, ..scope })
    }

    /// The outputs that a run has of the tasks upstream, and the run itself.
    async fn read_run(
        &self,
        client: &client::Client,
        run: RunId,
        task: TaskIndex,
    ) -> Result<(Map<String, Value>, Option<RunView>)> {
        let (id, mut outputs) = (run.to_string(), Map::new());
        let view: RunView = client.get(&["runs", &id], &[]).await?;
        for upstream in self.graph.ancestors(task) {
            let name = &self.graph.spec(upstream).name;
            match client.get::<OutputView>(&["runs", &id, "tasks", name, "output"], &[]).await {
                Ok(found) => drop(outputs.insert(name.clone(), found.output)),
                // A task that has not succeeded has none.
                Err(client::Error::Rejected { status: 404, .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((outputs, Some(view)))
    }
}

fn read_object(path: &Path) -> Result<Map<String, Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} does not contain a JSON object", path.display()))
}

/// Prints the records of an attempt to standard error.
struct Printer {
    attempt: u32,
}

#[async_trait]
impl AttemptSink for Printer {
    async fn append_log(&self, _: u32, lines: &[LogLine]) -> Result<(), SinkError> {
        for line in lines {
            eprintln!("{:<7} {}", line.level, line.line);
        }
        Ok(())
    }

    async fn save_checkpoint(&self, _: Instant, data: &Value) -> Result<(), SinkError> {
        eprintln!("checkpoint {data}");
        Ok(())
    }

    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError> {
        let mut progress = Progress::new(self.attempt, report.at);
        progress.apply(report);
        eprintln!("progress {}", output::reported(&ProgressView::from(progress)));
        Ok(())
    }
}
