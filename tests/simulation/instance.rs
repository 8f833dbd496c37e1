//! One instance of each function in a process of its own: with its clock, its caches and its worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use auth::PushAuth;
use axum::Router;
use execute::{Executor, Runner, TaskRunners, Worker};
use host::App;
use model::{Instant, Topic};
use runtime::Runtime;
use store::Memory;
use sweep::Sweep;

use crate::bugs::Planted;
use crate::bus::{InFlight, RequestedWakeUps, SimulatedBus, SimulatedWakeUps};
use crate::clock::{Skew, SkewedClock, Time};
use crate::fault_points::Points;
use crate::script::Script;
use crate::store::{Ledger, Sessions, SimulatedStore};

/// What all instances share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) memory: Arc<Memory>,
    pub(crate) in_flight: InFlight,
    pub(crate) time: Time,
    pub(crate) points: Points,
    pub(crate) ledger: Ledger,
    pub(crate) planted: Planted,
    /// Where sweeps request wake-ups, in worlds where ticks come once an hour.
    pub(crate) wake_ups: Option<RequestedWakeUps>,
}

/// One process. Dropping it ends everything in it immediately.
pub(crate) struct Instance {
    pub(crate) id: u64,
    pub(crate) app: App,
    pub(crate) frozen_until: Option<Instant>,
    sessions: Sessions,
    pub(crate) trigger: Router,
    pub(crate) evaluate: Router,
    execute: Router,
    pub(crate) sweep: Router,
    pub(crate) worker: Arc<Worker>,
    over: Arc<AtomicBool>,
    process: tokio::runtime::Runtime,
}

impl Instance {
    pub(crate) fn new(id: u64, shared: &Shared, skew: Skew) -> Self {
        let (points, sessions) = (shared.points.of_instance(id), Sessions::default());
        let store = SimulatedStore {
            inner: shared.memory.clone(),
            points: points.clone(),
            ledger: shared.ledger.clone(),
            planted: shared.planted.clone(),
            sessions: sessions.clone(),
        };
        let bus = SimulatedBus { in_flight: shared.in_flight.clone(), points: points.clone() };
        let clock = SkewedClock { time: shared.time.clone(), skew };
        let mut runtime = Runtime::new(Arc::new(store), Arc::new(bus), Arc::new(clock));
        if shared.wake_ups.is_some() {
            runtime =
                runtime.with(::runtime::Settings { exact_wake_ups: true, ..::runtime::Settings::default() });
        }
        let runtime = Arc::new(runtime);
        let app = App::new(runtime.clone(), PushAuth::None);
        let task_runners = TaskRunners::standard().with(Script);
        let worker = Worker::new(runtime.clone());
        let mut sweep = Sweep::new(runtime.clone());
        if let Some(requested) = shared.wake_ups.clone() {
            sweep = sweep.with_wake_ups(Arc::new(SimulatedWakeUps { requested, points }));
        }
        let runner = Runner::new(runtime.clock().clone(), ".").with_task_runners(task_runners);
        let executor = Executor::new(runtime, worker.clone(), runner);
        let instance = Self {
            id,
            frozen_until: None,
            sessions,
            trigger: trigger::router(app.clone(), None),
            evaluate: evaluate::router(app.clone()),
            execute: execute::router_with(app.clone(), executor),
            sweep: sweep::router_with(app.clone(), sweep),
            app,
            worker,
            over: Arc::default(),
            process: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        };
        let worker = instance.worker.clone();
        instance.end_after(async move { worker.ended().await });
        instance
    }

    /// Asks it to stop, as a platform does: active work may finish for a while and is then handed back.
    pub(crate) fn ask_to_end(&self, grace: Duration) {
        let worker = self.worker.clone();
        self.end_after(async move { worker.stop("asked to", grace).await });
    }

    fn end_after(&self, last: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        self.process.spawn(async move {
            last.await;
            over.store(true, Ordering::Relaxed);
        });
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn for_topic(&self, topic: &Topic) -> Option<&Router> {
        match topic {
            Topic::Triggers => Some(&self.trigger),
            Topic::Evaluations => Some(&self.evaluate),
            Topic::Work(_) => Some(&self.execute),
            Topic::Management => Some(&self.sweep),
            Topic::Lifecycle | Topic::Named(_) => None,
        }
    }

    pub(crate) fn start(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        self.process.spawn(work)
    }

    /// Lets its handlers run as far as they can, unless it is frozen.
    pub(crate) fn drive(&self) {
        if self.frozen_until.is_none() {
            self.process.block_on(tokio::task::yield_now());
        }
    }

    /// Freezes it until then. Its transactions end.
    pub(crate) fn freeze(&mut self, until: Instant) {
        self.frozen_until = Some(until);
        self.sessions.end();
    }
}
