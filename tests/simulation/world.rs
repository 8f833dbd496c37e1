//! One simulated world: two instances of each function, one store, one bus, one clock, one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use auth::{Issuer, Keys, PushAuth, Verifier};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use bus::envelope;
use chrono::{DurationRound, TimeDelta};
use clock::Clock;
use model::message::RunRequested;
use model::{Event, Instant, Limit, Message, RunId, RunState, TaskState, TenantId, Topic};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use runtime::Runtime;
use serde_json::{Map, json};
use service::App;
use store::{Memory, NewVersion, Store};
use testkit::ManualClock;
use tower::ServiceExt;
use uuid::Uuid;

use crate::bus::Bag;
use crate::check;
use crate::scheduler::{Handlers, Points};
use crate::store::Interrupted;
use crate::workflows;

const PUSHER: &str = "pusher@example.com";
const AUDIENCE: &str = "push";
const START: &str = "2026-01-01T00:00:00Z";

/// A run that has not ended after so long is stuck.
const LONGEST: TimeDelta = TimeDelta::hours(6);

/// No seed needs more steps than this; a world that does is going round in circles.
const MOST_STEPS: u64 = 400_000;

/// One key for all worlds: making one takes longer than playing a seed.
static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.example"));

/// Signing takes longer than handling a message, and a token lasts for an hour: one per half hour will do.
fn push_token(now: Instant) -> String {
    static TOKENS: Mutex<BTreeMap<Instant, String>> = Mutex::new(BTreeMap::new());
    let half_hour = now.duration_trunc(TimeDelta::minutes(30)).unwrap();
    let mut tokens = TOKENS.lock().unwrap();
    tokens.entry(half_hour).or_insert_with(|| ISSUER.push_token(PUSHER, AUDIENCE, half_hour)).clone()
}

/// How badly the world treats messages and processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    duplicate: f64,
    drop: f64,
    late: f64,
    kill: f64,
}

impl Weather {
    pub(crate) fn calm() -> Self {
        Self { duplicate: 0.0, drop: 0.0, late: 0.0, kill: 0.0 }
    }

    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(!seed);
        Self {
            duplicate: dice.random_range(0.0..0.4),
            drop: dice.random_range(0.0..0.2),
            late: dice.random_range(0.0..0.3),
            kill: dice.random_range(0.0..0.02),
        }
    }
}

/// What is to be delivered, and when at the earliest.
#[derive(Clone)]
struct Parcel {
    message: Message,
    not_before: Instant,
}

/// What a handler is about: a delivery, or the scheduler's tick.
enum About {
    Delivery(Parcel),
    Tick,
}

/// How a world ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) run: RunState,
    pub(crate) tasks: Vec<TaskState>,
    pub(crate) events: Vec<Event>,
    /// Everything that the world did, in order: equal for equal seeds.
    pub(crate) journal: Vec<String>,
}

pub(crate) struct World {
    dice: StdRng,
    weather: Weather,
    clock: ManualClock,
    store: Arc<Memory>,
    bag: Bag,
    points: Points,
    instances: Vec<Instance>,
    parcels: Vec<Parcel>,
    handlers: Handlers<About, StatusCode>,
    run: RunId,
    next_tick: Instant,
    journal: Vec<String>,
    seed: u64,
}

/// One instance of each function.
struct Instance {
    trigger: Router,
    evaluate: Router,
    execute: Router,
    sweep: Router,
}

impl Instance {
    fn new(store: Arc<dyn Store>, bag: Bag, clock: ManualClock) -> Self {
        let runtime = Arc::new(Runtime::new(store, Arc::new(bag), Arc::new(clock)));
        let verifier = Verifier::new([ISSUER.url()], AUDIENCE, Keys::fixed(&ISSUER.jwks()));
        let push = Arc::new(PushAuth::Oidc { verifier, service_account: PUSHER.into() });
        let app = App { runtime, push };
        Self {
            trigger: trigger::router(app.clone(), None),
            evaluate: evaluate::router(app.clone()),
            execute: execute::router(app.clone()),
            sweep: sweep::router(app),
        }
    }

    fn for_topic(&self, topic: &Topic) -> Option<&Router> {
        match topic {
            Topic::Triggers => Some(&self.trigger),
            Topic::Evaluations => Some(&self.evaluate),
            Topic::Work(_) => Some(&self.execute),
            Topic::Management => Some(&self.sweep),
            Topic::Lifecycle | Topic::Named(_) => None,
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let (clock, points, memory) =
            (ManualClock::at(START), Points::default(), Arc::new(Memory::default()));
        let bag = Bag::new(points.clone());
        let instance = |_| {
            let store = Interrupted { inner: memory.clone(), points: points.clone() };
            Instance::new(Arc::new(store), bag.clone(), clock.clone())
        };
        Self {
            dice: StdRng::seed_from_u64(seed),
            weather,
            instances: (0..2).map(instance).collect(),
            bag,
            points,
            parcels: Vec::new(),
            handlers: Handlers::new(),
            run: RunId(Uuid::from_u128(u128::from(seed) + 1)),
            next_tick: clock.now(),
            clock,
            store: memory,
            journal: Vec::new(),
            seed,
        }
    }

    /// Plays until the run has ended and nobody works any more.
    pub(crate) fn play(mut self) -> Result<End, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            self.request_run().await;
            let mut steps = 0;
            while !(self.is_over().await && self.handlers.len() == 0 && self.parcels.is_empty()) {
                steps += 1;
                if steps > MOST_STEPS || self.clock.now() > START.parse::<Instant>().unwrap() + LONGEST {
                    return Err(format!("stuck after {steps} steps: {}", self.describe().await));
                }
                self.step();
                // Loggers are tasks of their own: they get their turn too.
                tokio::task::yield_now().await;
            }
            self.end().await
        })
    }

    async fn request_run(&mut self) {
        let now = self.clock.now();
        for workflow in [workflows::random(self.seed), workflows::small()] {
            let (hash, source, by) = (String::from("h"), String::new(), String::from("simulation"));
            let new = NewVersion { tenant: TenantId::DEFAULT, workflow, source, hash, by, at: now };
            self.store.register(&new).await.unwrap();
        }
        // In half of the worlds, places are so few that tasks stand in line.
        if self.seed.is_multiple_of(2) {
            let places = Some(1 + (self.seed / 2 % 3) as u32);
            self.store.set_places(&Limit::Queue("light".into()), places).await.unwrap();
        }
        let request = Message::RunRequested(RunRequested {
            run: self.run,
            tenant: TenantId::DEFAULT,
            workflow: "random".into(),
            inputs: Map::new(),
            logical_date: None,
            labels: Map::new(),
            trigger: "message".into(),
            parent: None,
            priority: 0,
        });
        // The request itself is not lost: whoever sent it sends it until it is answered.
        self.parcels.push(Parcel { message: request, not_before: now });
    }

    /// One thing happens: a handler goes on or dies, a message is delivered, a tick comes, or time passes.
    fn step(&mut self) {
        self.collect();
        let now = self.clock.now();
        if now >= self.next_tick {
            self.next_tick += TimeDelta::minutes(1);
            return self.tick();
        }
        let due: Vec<usize> =
            (0..self.parcels.len()).filter(|index| self.parcels[*index].not_before <= now).collect();
        let choices = self.handlers.len() + due.len();
        if choices == 0 || self.dice.random_bool(0.02) {
            return self.pass_time();
        }
        match self.dice.random_range(0..choices) {
            chosen if chosen < self.handlers.len() => self.go_on(chosen),
            chosen => self.deliver(due[chosen - self.handlers.len()]),
        }
    }

    /// Takes what was published: some of it is lost, some comes twice, some late.
    fn collect(&mut self) {
        for message in self.bag.take() {
            let copies = 1 + usize::from(self.dice.random_bool(self.weather.duplicate));
            for _ in 0..copies {
                if self.dice.random_bool(self.weather.drop) {
                    self.note(format!("lost {}", message.kind()));
                    continue;
                }
                let late = self.dice.random_bool(self.weather.late);
                let delay = if late {
                    TimeDelta::seconds(self.dice.random_range(1..3600))
                } else {
                    TimeDelta::zero()
                };
                self.parcels.push(Parcel { message: message.clone(), not_before: self.clock.now() + delay });
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        let parcel = self.parcels.swap_remove(index);
        let instance = self.dice.random_range(0..self.instances.len());
        let topic = parcel.message.topic();
        let Some(router) = self.instances[instance].for_topic(&topic).cloned() else { return };
        self.note(format!("delivered {} to {instance}", parcel.message.kind()));
        let (headers, body) = envelope::wrap(&parcel.message, "1", self.clock.now(), "simulated", Some(1));
        let mut request = Request::post("/push").body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        self.call(About::Delivery(parcel), router, request);
    }

    fn tick(&mut self) {
        let instance = self.dice.random_range(0..self.instances.len());
        self.note(format!("tick to {instance}"));
        let router = self.instances[instance].sweep.clone();
        self.call(About::Tick, router, Request::post("/sweep").body(Body::empty()).unwrap());
    }

    fn call(&mut self, about: About, router: Router, mut request: Request<Body>) {
        let token = push_token(self.clock.now());
        request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        self.handlers.start(about, async move { router.oneshot(request).await.unwrap().status() });
    }

    fn go_on(&mut self, index: usize) {
        if self.dice.random_bool(self.weather.kill) {
            self.note("killed a handler".into());
            let about = self.handlers.kill(index);
            return self.again(about);
        }
        match self.handlers.go_on(index) {
            Some((about, status)) if !status.is_success() => self.again(about),
            _ => {}
        }
    }

    /// What was not acknowledged comes again after its deadline.
    fn again(&mut self, about: About) {
        if let About::Delivery(parcel) = about {
            let not_before = self.clock.now() + TimeDelta::seconds(self.dice.random_range(1..30));
            self.parcels.push(Parcel { not_before, ..parcel });
        }
    }

    /// Time passes: a little while handlers are at work, else to the next thing that is due.
    fn pass_time(&mut self) {
        let now = self.clock.now();
        let parcels = self.parcels.iter().map(|parcel| parcel.not_before);
        let next = parcels.chain([self.next_tick]).filter(|at| *at > now).min().unwrap_or(self.next_tick);
        let step = TimeDelta::milliseconds(self.dice.random_range(1..2_000));
        self.clock.set((now + step).min(next));
    }

    fn note(&mut self, what: String) {
        self.journal.push(format!("{} {} {what}", self.clock.now(), self.points.count()));
    }

    async fn is_over(&self) -> bool {
        let record = self.store.run(TenantId::DEFAULT, self.run).await.unwrap();
        record.is_some_and(|record| record.run.state.is_final())
    }

    async fn describe(&self) -> String {
        let tasks = self.store.run_tasks(self.run, None, None, 100).await.unwrap();
        let stand = tasks.iter().map(|row| format!("{}#{}", row.task.state.name(), row.task.attempt));
        json!({"tasks": stand.collect::<Vec<_>>(), "parcels": self.parcels.len(), "handlers": self.handlers.len()})
            .to_string()
    }

    async fn end(self) -> Result<End, String> {
        let record = self.store.run(TenantId::DEFAULT, self.run).await.unwrap().unwrap();
        let tasks = self.store.run_tasks(self.run, None, None, 100).await.unwrap();
        let events = self.store.events(self.run, 0, 10_000).await.unwrap();
        let letters = self.store.dead_letters(&store::LetterFilter::newest(10)).await.unwrap();
        if let Some(letter) = letters.first() {
            return Err(format!("a message was given up on: {}", letter.reason));
        }
        let end = End {
            run: record.run.state,
            tasks: tasks.into_iter().map(|row| row.task.state).collect(),
            events: events.into_iter().map(|(_, event)| event).collect(),
            journal: self.journal,
        };
        check::history(&end, &workflows::random(self.seed))?;
        Ok(end)
    }
}
