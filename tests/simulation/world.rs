//! One simulated world: instances of each function, one store, one bus, one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bus::envelope;
use chrono::TimeDelta;
use model::message::{CancelRequested, RunRequested};
use model::{Instant, Message, RunId, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Map;
use store::{Memory, NewVersion, Store};
use tokio::task::JoinHandle;
use tower::ServiceExt;
use uuid::Uuid;

use crate::bugs::{Bug, Planted};
use crate::bus::Bag;
use crate::check::{Checked, End, Trouble, trouble};
use crate::clock::{Skew, Time};
use crate::coverage::Moves;
use crate::instance::{Ground, Instance};
use crate::people::{self, Errand, What};
use crate::points::{CALL, Interrupted, Points, now};
use crate::store::Ledger;
use crate::watch::Watch;
use crate::weather::{Fault, Point, Storm, Tally, Weather};
use crate::workflows;

const START: &str = "2026-01-01T00:00:00Z";

/// A run that has not ended after so long is stuck.
pub(crate) const LONGEST: TimeDelta = TimeDelta::hours(8);

/// No seed needs more steps than this; a world that does is going round in circles.
const MOST_STEPS: u64 = 400_000;

/// A message that failed so often is delivered no more.
const MOST_DELIVERIES: u32 = 8;

/// What is to be delivered, and when at the earliest.
#[derive(Clone)]
struct Parcel {
    message: Message,
    not_before: Instant,
    deliveries: u32,
    /// Whoever sends it sends it until it is answered.
    sure: bool,
}

/// What a handler is about: a delivery, the scheduler's tick, or a person's errand.
enum About {
    Delivery(Parcel),
    Tick,
    Errand(What),
}

struct Call {
    about: About,
    instance: u64,
    handle: JoinHandle<()>,
}

/// How a world ended.
pub(crate) struct Ended {
    /// The runs that were asked for and created, in order.
    pub(crate) ends: Vec<Option<End>>,
    /// Whether the ends follow from the definition alone.
    pub(crate) determined: bool,
    /// Everything that the world did, in order: equal for equal seeds.
    pub(crate) journal: Vec<String>,
    pub(crate) moves: Moves,
    pub(crate) tally: Tally,
    /// How many faults struck or would have.
    pub(crate) faults: u64,
    /// When the last run ended, from the start.
    pub(crate) took: TimeDelta,
}

pub(crate) struct World {
    seed: u64,
    dice: StdRng,
    storm: Storm,
    pub(crate) ground: Ground,
    instances: Vec<Instance>,
    last_instance: u64,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    answers: Arc<Mutex<Vec<(u64, bool)>>>,
    parcels: Vec<Parcel>,
    errands: Vec<Errand>,
    runs: Vec<RunId>,
    start: Instant,
    next_tick: Instant,
    store_back: Option<Instant>,
    bus_back: Option<Instant>,
    pub(crate) watch: Watch,
    journal: Vec<String>,
    /// Decides which messages are lost whatever the weather; none if it does not.
    pub(crate) censor: Option<Box<dyn FnMut(&Message, Instant) -> bool>>,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather, bug: Option<Bug>) -> Self {
        let start: Instant = START.parse().unwrap();
        let (storm, bag) = (Storm::new(seed, weather), Bag::default());
        let ground = Ground {
            memory: Arc::new(Memory::default()),
            planted: Planted::new(bug, bag.clone(), seed),
            bag,
            time: Time::at(start),
            points: Points::new(storm.clone()),
            ledger: Ledger::default(),
        };
        let mut dice = StdRng::seed_from_u64(seed);
        let instances = dice.random_range(2..5);
        let mut world = Self {
            seed,
            dice,
            storm,
            watch: Watch::new(ground.memory.clone()),
            ground,
            instances: Vec::new(),
            last_instance: 0,
            calls: BTreeMap::new(),
            last_call: 0,
            answers: Arc::default(),
            parcels: Vec::new(),
            errands: Vec::new(),
            runs: Vec::new(),
            start,
            next_tick: start,
            store_back: None,
            bus_back: None,
            journal: Vec::new(),
            censor: None,
        };
        for _ in 0..instances {
            let fresh = world.fresh_instance();
            world.instances.push(fresh);
        }
        world
    }

    fn fresh_instance(&mut self) -> Instance {
        self.last_instance += 1;
        let mut skew = Skew::none(self.ground.time.now());
        if self.storm.strikes(Fault::Skew, None) {
            skew.offset = TimeDelta::milliseconds(self.storm.draw(-50_000..50_000));
            skew.drift = self.storm.draw(-4..5);
        }
        Instance::new(self.last_instance, &self.ground, skew)
    }

    /// Asks for some runs of the seed's workflow.
    pub(crate) fn with_random_runs(mut self) -> Self {
        self.register([workflows::random(self.seed), workflows::small()]);
        let mut dice = StdRng::seed_from_u64(self.seed ^ 0xABCD);
        for number in 0..dice.random_range(1..4) {
            let at = self.start + TimeDelta::seconds(number * dice.random_range(0..120));
            let run = self.request("random", at);
            self.errands.extend(people::errands(self.seed, run, at));
            if self.storm.strikes(Fault::Cancel, None) {
                let (actor, reason) = ("ana".to_owned(), "enough".to_owned());
                let cancel = Message::CancelRequested(CancelRequested { run, actor, reason });
                let at = at + TimeDelta::seconds(self.storm.draw(0..400));
                self.parcels.push(Parcel { message: cancel, not_before: at, deliveries: 0, sure: true });
            }
        }
        for number in 0..2 {
            if self.storm.strikes(Fault::NewVersion, None) {
                let at = self.start + TimeDelta::seconds(self.storm.draw(0..400));
                let new = Box::new(people::version(self.seed, number, at));
                self.errands.push(Errand { at, what: What::Register(new) });
            }
        }
        self
    }

    pub(crate) fn register(&mut self, all: impl IntoIterator<Item = model::Workflow>) {
        for workflow in all {
            let (hash, source, by) = (String::from("h"), String::new(), String::from("simulation"));
            let new = NewVersion { tenant: TenantId::DEFAULT, workflow, source, hash, by, at: self.start };
            now(self.ground.memory.register(&new)).unwrap();
        }
    }

    pub(crate) fn request(&mut self, workflow: &str, at: Instant) -> RunId {
        let run = RunId(Uuid::from_u128((u128::from(self.seed) << 8) + self.runs.len() as u128 + 1));
        let request = Message::RunRequested(RunRequested {
            run,
            tenant: TenantId::DEFAULT,
            workflow: workflow.into(),
            inputs: Map::new(),
            logical_date: None,
            labels: Map::new(),
            trigger: "message".into(),
            parent: None,
        });
        self.runs.push(run);
        self.parcels.push(Parcel { message: request, not_before: at, deliveries: 0, sure: true });
        run
    }

    pub(crate) fn now(&self) -> Instant {
        self.ground.time.now()
    }

    /// Plays until all runs have ended and nobody works any more.
    pub(crate) fn play(mut self) -> Result<Ended, Trouble> {
        let mut steps = 0;
        loop {
            self.settle_down()?;
            if self.is_over() {
                return self.end();
            }
            steps += 1;
            if steps > MOST_STEPS || self.now() > self.start + LONGEST {
                let what = format!("after {steps} steps at {}: {}", self.now(), self.describe());
                return Err(Trouble { invariant: "every_run_ends", what });
            }
            self.step();
        }
    }

    /// Plays one step, and looks at what it changed.
    pub(crate) fn play_step(&mut self) -> Checked {
        self.step();
        self.settle_down()
    }

    /// Lets everyone go on who can, and looks at what came of it.
    fn settle_down(&mut self) -> Checked {
        self.instances.iter().for_each(Instance::drive);
        self.hear_answers()?;
        for run in self.ground.ledger.take() {
            self.watch.look_at(run, self.now())?;
        }
        self.collect()
    }

    /// One thing happens: a handler goes on or not, a message is delivered, a tick comes, or time passes.
    fn step(&mut self) {
        let now = self.now();
        self.bring_back(now);
        if now >= self.next_tick {
            self.next_tick += TimeDelta::minutes(1);
            return self.tick();
        }
        if let Some(place) = self.errands.iter().position(|errand| errand.at <= now) {
            let errand = self.errands.swap_remove(place);
            return self.run_errand(errand.what);
        }
        self.strike(now);
        let instances = &self.instances;
        let still = |id: u64| {
            instances.iter().any(|instance| instance.id == id && instance.stands_still_until.is_some())
        };
        let ready = self.ground.points.ready(now, still);
        let due: Vec<usize> =
            (0..self.parcels.len()).filter(|index| self.parcels[*index].not_before <= now).collect();
        let choices = ready.len() + due.len();
        if choices == 0 || self.dice.random_bool(0.01) {
            return self.pass_time(choices > 0);
        }
        match self.dice.random_range(0..choices) {
            chosen if chosen < ready.len() => self.go_on(ready[chosen]),
            chosen => self.deliver(due[chosen - ready.len()]),
        }
    }

    /// What was away or stood still is back.
    fn bring_back(&mut self, now: Instant) {
        let back = |at: &mut Option<Instant>| *at = at.filter(|at| *at > now);
        self.instances.iter_mut().for_each(|instance| back(&mut instance.stands_still_until));
        back(&mut self.store_back);
        back(&mut self.bus_back);
        self.ground.points.set_away(self.store_back.is_some(), self.bus_back.is_some());
    }

    /// What strikes a whole instance, the store or the bus.
    fn strike(&mut self, now: Instant) {
        if self.storm.strikes(Fault::StoreOutage, None) {
            self.store_back = Some(now + TimeDelta::seconds(self.storm.draw(1..180)));
            self.note("the store is away");
        }
        if self.storm.strikes(Fault::BusOutage, None) {
            self.bus_back = Some(now + TimeDelta::seconds(self.storm.draw(1..180)));
            self.note("the bus is away");
        }
        if self.storm.strikes(Fault::Freeze, None) {
            let place = self.storm.draw(0..self.instances.len() as i64) as usize;
            let until = now + TimeDelta::seconds(self.storm.draw(61..400));
            self.instances[place].stand_still(until);
            self.note(&format!("instance {place} stands still until {until}"));
            let id = self.instances[place].id;
            self.come_again(|call| call.instance == id);
        }
        if self.storm.strikes(Fault::Impatience, None) {
            self.come_again(|_| true);
        }
    }

    /// Messages whose delivery is not answered in time come again, though somebody is still at them.
    fn come_again(&mut self, whose: impl Fn(&Call) -> bool) {
        let at = self.now() + TimeDelta::seconds(60);
        let again = self.calls.values().filter(|call| whose(call)).filter_map(|call| match &call.about {
            About::Delivery(parcel) => Some(Parcel { not_before: at, ..parcel.clone() }),
            _ => None,
        });
        self.parcels.extend(again.collect::<Vec<_>>());
    }

    /// Takes what was published: some of it is lost, some comes twice, some late.
    fn collect(&mut self) -> Checked {
        let now = self.now();
        for message in self.ground.bag.take() {
            self.watch.said(&message)?;
            let censored = self.censor.as_mut().is_some_and(|lost| lost(&message, now));
            let copies = 1 + usize::from(self.storm.strikes(Fault::Duplicate, None));
            for _ in 0..copies {
                if censored || self.storm.strikes(Fault::Drop, None) {
                    self.note(&format!("lost {}", message.kind()));
                    continue;
                }
                let late = self.storm.strikes(Fault::Late, None);
                let delay = TimeDelta::seconds(if late { self.storm.draw(1..3600) } else { 0 });
                let message = message.clone();
                self.parcels.push(Parcel { message, not_before: now + delay, deliveries: 0, sure: false });
            }
        }
        Ok(())
    }

    /// An instance that takes calls.
    fn pick(&mut self) -> usize {
        let awake: Vec<usize> =
            (0..self.instances.len()).filter(|i| self.instances[*i].stands_still_until.is_none()).collect();
        match awake.len() {
            // Whoever calls one that stands still waits with it.
            0 => self.dice.random_range(0..self.instances.len()),
            count => awake[self.dice.random_range(0..count)],
        }
    }

    fn deliver(&mut self, index: usize) {
        let parcel = self.parcels.swap_remove(index);
        let place = self.pick();
        let Some(router) = self.instances[place].for_topic(&parcel.message.topic()).cloned() else { return };
        self.note(&format!("delivered {} to {place}", parcel.message.kind()));
        let (headers, body) = envelope::wrap(&parcel.message, "1", self.now(), "simulated", Some(1));
        let mut request = Request::post("/push").body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        self.call(place, About::Delivery(parcel), ask(router, request));
    }

    fn tick(&mut self) {
        let place = self.pick();
        self.note(&format!("tick to {place}"));
        let router = self.instances[place].sweep.clone();
        self.call(place, About::Tick, ask(router, Request::post("/sweep").body(Body::empty()).unwrap()));
    }

    fn run_errand(&mut self, what: What) {
        let place = self.pick();
        self.note(&format!("a person at {place}"));
        let app = self.instances[place].app.clone();
        self.call(place, About::Errand(what.clone()), people::run(what, app));
    }

    fn call(&mut self, place: usize, about: About, work: impl Future<Output = bool> + Send + 'static) {
        self.last_call += 1;
        let (id, answers) = (self.last_call, self.answers.clone());
        let work = CALL.scope(id, async move {
            let answer = work.await;
            answers.lock().unwrap().push((id, answer));
        });
        let instance = &self.instances[place];
        let handle = instance.start(work);
        self.calls.insert(id, Call { about, instance: instance.id, handle });
    }

    fn hear_answers(&mut self) -> Checked {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        for (id, well) in answers {
            if let Some(call) = self.calls.remove(&id).filter(|_| !well) {
                self.again(call.about);
            }
        }
        let broken = self.calls.values_mut().find(|call| call.handle.is_finished());
        match broken.map(|call| now(&mut call.handle)) {
            Some(Err(error)) => trouble("no_handler_breaks_down", error.to_string()),
            _ => Ok(()),
        }
    }

    /// Lets someone go on from where they stand, unless something happens to them there.
    fn go_on(&mut self, stop: u64) {
        let (instance, call, point) = self.ground.points.place(stop);
        if self.storm.strikes(Fault::Crash, Some(point)) {
            return self.crash(instance);
        }
        if self.storm.strikes(Fault::Die, Some(point)) {
            // What an instance does by itself ends only with it.
            let Some(call) = call.and_then(|id| self.calls.remove(&id)) else { return self.crash(instance) };
            self.note(&format!("killed a handler at {point:?}"));
            call.handle.abort();
            return self.again(call.about);
        }
        let can_be_slow = Fault::Slow.points().contains(&point) && !self.ground.points.is_slow(stop);
        if can_be_slow && self.storm.strikes(Fault::Slow, Some(point)) {
            let longest = if point == Point::BeforeCommit { 30 } else { 150 };
            let until = self.now() + TimeDelta::seconds(self.storm.draw(1..longest));
            return self.ground.points.slow_down(stop, until);
        }
        let fails = point != Point::Turn
            && (self.ground.points.is_away(point) || self.storm.strikes(Fault::Fail, Some(point)));
        self.ground.points.release(stop, if fails { Err(Interrupted) } else { Ok(()) });
    }

    /// An instance ends where it stands, and a fresh one takes its place.
    fn crash(&mut self, id: u64) {
        let Some(place) = self.instances.iter().position(|instance| instance.id == id) else { return };
        self.note(&format!("instance {place} ends and is replaced"));
        self.instances[place] = self.fresh_instance();
        let lost: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.instance == id).map(|(id, _)| *id).collect();
        for call in lost.into_iter().filter_map(|id| self.calls.remove(&id)).collect::<Vec<_>>() {
            self.again(call.about);
        }
    }

    /// What was not acknowledged comes again later, but not for ever.
    fn again(&mut self, about: About) {
        let later = self.now() + TimeDelta::seconds(self.dice.random_range(1..30));
        match about {
            About::Delivery(parcel) => {
                let deliveries = parcel.deliveries + 1;
                let too_often = deliveries >= MOST_DELIVERIES && !parcel.sure;
                if too_often && self.storm.strikes(Fault::DeadLetter, None) {
                    return self.note(&format!("gave up on {}", parcel.message.kind()));
                }
                self.parcels.push(Parcel { not_before: later, deliveries, ..parcel });
            }
            About::Errand(what) => self.errands.push(Errand { at: later, what }),
            About::Tick => {}
        }
    }

    /// Time passes: a little while somebody is at work, else to the next thing that is due.
    fn pass_time(&mut self, little: bool) {
        let now = self.now();
        let parcels = self.parcels.iter().map(|parcel| parcel.not_before);
        let errands = self.errands.iter().map(|errand| errand.at);
        let still = self.instances.iter().filter_map(|instance| instance.stands_still_until);
        let others = [self.ground.time.next_wake(), self.ground.points.next_at(now), Some(self.next_tick)];
        let all = parcels.chain(errands).chain(still).chain(others.into_iter().flatten());
        let all = all.chain(self.store_back).chain(self.bus_back);
        let next = all.filter(|at| *at > now).min().unwrap_or(self.next_tick);
        let step = TimeDelta::milliseconds(self.dice.random_range(1..2_000));
        self.ground.time.set(if little { (now + step).min(next) } else { next });
    }

    fn note(&mut self, what: &str) {
        self.journal.push(format!("{} {what}", self.now()));
    }

    /// Everything that was asked for has ended, and nothing is on its way. Whoever still waits for a person is heard.
    fn is_over(&mut self) -> bool {
        if !self.parcels.is_empty() || !self.errands.is_empty() || !self.calls.is_empty() {
            return false;
        }
        let waiting = self.watch.who_waits_for_people();
        if self.now() > self.start + TimeDelta::minutes(25) && !waiting.is_empty() {
            let at = self.now() + TimeDelta::seconds(30);
            self.errands.extend(waiting.into_iter().map(|what| Errand { at, what }));
        }
        self.watch.all_ended() && self.watch.is_clean(self.now())
    }

    fn describe(&self) -> String {
        let (parcels, calls) = (self.parcels.len(), self.calls.len());
        let (stops, errands) = (self.ground.points.count(), self.errands.len());
        format!(
            "{parcels} parcels, {calls} calls, {stops} stops, {errands} errands; {}",
            self.watch.describe(self.now())
        )
    }

    fn end(mut self) -> Result<Ended, Trouble> {
        self.watch.end()?;
        let determined = workflows::is_determined(&workflows::random(self.seed)) && self.watch.is_lossless();
        Ok(Ended {
            ends: self.runs.iter().map(|run| self.watch.end_of(*run)).collect(),
            determined,
            took: self.watch.last_end().map_or(TimeDelta::zero(), |at| at - self.start),
            faults: self.storm.struck(),
            tally: self.storm.tally(),
            moves: std::mem::take(&mut self.watch.moves),
            journal: std::mem::take(&mut self.journal),
        })
    }
}

async fn ask(router: Router, request: Request<Body>) -> bool {
    router.oneshot(request).await.unwrap().status().is_success()
}
