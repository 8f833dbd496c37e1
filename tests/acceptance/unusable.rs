//! A version that this program cannot compile: its runs wait and are reported, all others continue, and a program that can
//! compile it resumes them.

use std::sync::Arc;

use chrono::TimeDelta;
use engine::Command;
use language::FileKind;
use model::message::TaskResult;
use model::{Clock, EventKind, RunId, RunState, TaskIndex, TenantId};
use runtime::{Error, Runtime, Settled};
use serde_json::Value;
use sqlx::Connection;
use store::Fault;
use testkit::ManualClock;

use crate::world::World;

/// What another program may have left: tasks that wait for each other, and something that is not a definition.
const BROKEN: [&str; 2] = [
    "update versions set definition = jsonb_set(definition::jsonb, '{tasks,0,depends_on}', '[\"b\"]')
      where workflow = 'bent'",
    "update versions set definition = '{\"name\": 7}' where workflow = 'bent'",
];

/// A process that has not compiled anything yet.
struct Program {
    clock: ManualClock,
    runtime: Arc<Runtime>,
}

impl Program {
    async fn start(world: &World, later: TimeDelta) -> Self {
        let clock = ManualClock::at(&(world.now() + later).to_rfc3339());
        let runtime = world.process(clock.clone()).await;
        Self { clock, runtime }
    }

    async fn sweep(&self) {
        sweep::Sweep::new(self.runtime.clone()).run().await.unwrap();
    }

    /// The runs whose version cannot be compiled, according to the doctor.
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

/// A run of each of two workflows. No worker serves their queue.
async fn two_runs(world: &World) -> [RunId; 2] {
    for name in ["bent", "sound"] {
        let mut workflow = testkit::workflow("a -> b");
        workflow.name = name.into();
        workflow.tasks.iter_mut().for_each(|task| task.queue = "nobody".into());
        world.register(workflow).await;
    }
    [world.start("bent").await, world.start("sound").await]
}

async fn change(world: &World, sql: &'static str) {
    let mut connection = sqlx::PgConnection::connect(world.database_url()).await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
}

async fn redispatches(world: &World, run: RunId) -> usize {
    let events = world.events(run).await;
    events.iter().filter(|event| event.kind == EventKind::TaskRedispatched).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_version_cannot_be_compiled_delays_no_other_and_continues_once_it_can_be() {
    for broken in BROKEN {
        let world = World::new().await;
        let [bent, sound] = two_runs(&world).await;
        change(&world, "create table kept as select * from versions").await;
        change(&world, broken).await;

        let program = Program::start(&world, TimeDelta::minutes(2)).await;
        assert_eq!(program.unusable().await, [bent]);
        // Both are due for a recheck.
        program.sweep().await;
        assert_eq!(redispatches(&world, bent).await, 0);
        assert!(redispatches(&world, sound).await > 0, "the other one is rechecked");
        let due = program.runtime.store().due_rechecks(program.clock.now() + TimeDelta::minutes(9), 9);
        assert_eq!(due.await.unwrap(), [sound], "the next recheck of the first one is ten minutes later");
        // Reports that share a batch: the one that fails does not fail the other.
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
        assert!(redispatches(&world, bent).await > 0, "it is rechecked again");
        for task in [0, 1] {
            newer.runtime.settle(bent, newer.report(task)).await.unwrap();
        }
        assert_eq!(world.run(bent).await.run.state, RunState::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_cannot_be_admitted_does_not_block_the_runs_behind_it() {
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
        testkit::compile(&[(FileKind::Workflow, &text)]).remove(0)
    };
    world.register_all(TenantId::DEFAULT, vec![group(1)]).await;
    let first = world.start("group").await;
    // In another process, so that the world has not compiled this version.
    world.register_all(TenantId::DEFAULT, vec![group(2)]).await;
    let other = Program::start(&world, TimeDelta::zero()).await;
    let stuck = other.runtime.start(testkit::start_run("group")).await.unwrap().record.run.id;
    world.register_all(TenantId::DEFAULT, vec![group(3)]).await;
    let behind = world.start("group").await;
    change(
        &world,
        "update versions set definition = '{\"name\": 7}' where workflow = 'group' and number = 2",
    )
    .await;

    world.signal(first, "go").await;
    assert_eq!(world.state(first).await, RunState::Succeeded);
    assert!(world.run(stuck).await.run.waiting, "it waits for a program that can compile its version");
    assert!(!world.run(behind).await.run.waiting, "the run behind it continues");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_of_a_run_that_cannot_be_settled_delays_no_other() {
    let world = World::new().await;
    let mut runs = Vec::new();
    for name in ["bent", "sound"] {
        let text = format!("{{name: {name}, tasks: [{{name: a, type: sleep, config: {{duration: 1m}}}}]}}");
        world.register_all(TenantId::DEFAULT, testkit::compile(&[(FileKind::Workflow, &text)])).await;
        runs.push(world.start(name).await);
    }
    let (bent, sound) = (runs[0], runs[1]);
    change(&world, "update versions set definition = '{\"name\": 7}' where workflow = 'bent'").await;
    let program = Program::start(&world, TimeDelta::minutes(2)).await;
    let fired = program.runtime.fire(program.clock.now(), 100).await.unwrap();
    assert_eq!((fired.due, fired.applied), (2, 1));
    assert_eq!(world.state(sound).await, RunState::Succeeded);
    assert_eq!(world.state(bent).await, RunState::Running);
    let again = program.runtime.fire(program.clock.now(), 100).await.unwrap();
    assert_eq!(again.due, 0, "the run that cannot be settled is postponed");
}
