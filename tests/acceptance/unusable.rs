//! A definition that this program cannot compile any more: its runs stand still and are named, everybody else's go on,
//! and a program that knows it takes them up again.

use std::sync::Arc;

use bus::SystemClock;
use chrono::TimeDelta;
use engine::Command;
use model::message::TaskResult;
use model::{Clock, EventKind, RunId, RunState, TaskIndex};
use runtime::{Error, Runtime, Settled};
use serde_json::Value;
use sqlx::Connection;
use store::{Fault, Postgres};
use testkit::ManualClock;

use crate::world::{World, register, request};

/// What another program left behind: tasks that wait for each other, and something that is no definition at all.
const BROKEN: [&str; 2] = [
    "update versions set definition = jsonb_set(definition::jsonb, '{tasks,0,depends_on}', '[\"b\"]')
      where workflow = 'bent'",
    "update versions set definition = '{\"name\": 7}' where workflow = 'bent'",
];

/// A program that has compiled nothing yet, some time later.
struct Program {
    clock: ManualClock,
    runtime: Arc<Runtime>,
}

impl Program {
    async fn start(world: &World, later: TimeDelta) -> Self {
        let clock = ManualClock::at(&(SystemClock.now() + later).to_rfc3339());
        let store = Arc::new(Postgres::connect(&world.database.url, 4).await.unwrap());
        let runtime = Arc::new(Runtime::new(store, Arc::new(world.broker.clone()), Arc::new(clock.clone())));
        Self { clock, runtime }
    }

    async fn sweep(&self) {
        sweep::Sweep::new(self.runtime.clone()).run().await.unwrap();
    }

    /// The runs whose version cannot be used, as the doctor lists them.
    async fn unusable(&self) -> Vec<RunId> {
        let (findings, _) = self.runtime.repairs().inspect(None, 9).await.unwrap();
        let unusable = findings.into_iter().filter(|finding| finding.fault == Fault::Unusable);
        unusable.filter_map(|finding| finding.run).collect()
    }

    fn report(&self, task: u32) -> Command {
        let (task, result) = (TaskIndex(task), TaskResult::Succeeded(Value::Null));
        Command::Report { task, attempt: 1, worker: None, started_at: self.clock.now(), result }
    }
}

/// A run of each of two workflows, whose tasks nobody carries out.
async fn two_runs(world: &World) -> [RunId; 2] {
    for name in ["bent", "sound"] {
        let mut workflow = testkit::workflow("a -> b");
        workflow.name = name.into();
        workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
        world.register(workflow).await;
    }
    [world.trigger("bent").await, world.trigger("sound").await]
}

async fn change(world: &World, sql: &'static str) {
    let mut connection = sqlx::PgConnection::connect(&world.database.url).await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
}

async fn repeated(world: &World, run: RunId) -> usize {
    let events = world.events(run).await;
    events.iter().filter(|event| event.kind == EventKind::TaskRedispatched).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_definition_cannot_be_compiled_holds_up_nobody_and_goes_on_once_it_can_be() {
    for broken in BROKEN {
        let world = World::new().await;
        let [bent, sound] = two_runs(&world).await;
        change(&world, "create table kept as select * from versions").await;
        change(&world, broken).await;

        let program = Program::start(&world, TimeDelta::minutes(2)).await;
        assert_eq!(program.unusable().await, [bent]);
        // Both are due to be looked at, together.
        program.sweep().await;
        assert_eq!(repeated(&world, bent).await, 0);
        assert!(repeated(&world, sound).await > 0, "the other one is looked at all the same");
        let due = program.runtime.store().due_rechecks(program.clock.now() + TimeDelta::minutes(9), 9);
        assert_eq!(due.await.unwrap(), [sound], "it is left alone for ten minutes");
        // Reports that come together: one spoils nothing for the other.
        let reports = [(bent, program.report(0)), (sound, program.report(0))];
        let [of_bent, of_sound] = reports.map(|(run, report)| program.runtime.settle(run, report));
        let (of_bent, of_sound) = tokio::join!(of_bent, of_sound);
        assert!(matches!(of_bent, Err(Error::Unusable { .. })), "{of_bent:?}");
        assert_eq!(of_sound.unwrap(), Settled::Applied);
        program.runtime.settle(sound, program.report(1)).await.unwrap();
        assert_eq!(world.run(sound).await.run.state, RunState::Succeeded);
        assert_eq!(world.run(bent).await.run.state, RunState::Running);

        change(
            &world,
            "update versions set definition = kept.definition from kept where kept.id = versions.id",
        )
        .await;
        let newer = Program::start(&world, TimeDelta::minutes(20)).await;
        assert_eq!(newer.unusable().await, []);
        newer.sweep().await;
        assert!(repeated(&world, bent).await > 0, "it is taken up again");
        for task in [0, 1] {
            newer.runtime.settle(bent, newer.report(task)).await.unwrap();
        }
        assert_eq!(world.run(bent).await.run.state, RunState::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_cannot_be_admitted_does_not_keep_those_behind_it_waiting() {
    let world = World::new().await;
    let group = |version: u32| {
        let text = format!(
            "
name: group
inputs: {{customer: {{type: string, default: ada}}}}
concurrency: {{key: '{{{{ inputs.customer }}}}'}}
tasks: [{{name: go, type: wait_for_signal, config: {{signal: go}}}}, {{name: v{version}, type: noop}}]
"
        );
        crate::world::compile(&[(language::FileKind::Workflow, &text)]).remove(0)
    };
    world.register(group(1)).await;
    let first = world.trigger("group").await;
    // By a program of its own, so that the world has not compiled this version.
    register(&**world.runtime.store(), group(2)).await;
    let elsewhere = Program::start(&world, TimeDelta::zero()).await;
    let stuck = elsewhere.runtime.start(request("group")).await.unwrap().record.run.id;
    world.register(group(3)).await;
    let behind = world.trigger("group").await;
    change(
        &world,
        "update versions set definition = '{\"name\": 7}' where workflow = 'group' and number = 2",
    )
    .await;

    world.signal(first, "go").await;
    assert_eq!(world.state(first).await, RunState::Succeeded);
    let held = |record: store::RunRecord| record.run.waiting;
    assert!(held(world.run(stuck).await), "it waits for a program that knows its definition");
    assert!(!held(world.run(behind).await), "the one behind it goes on");
}
