//! Calls to instances: deliveries, ticks and errands, and what becomes of those that are not answered well.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bus::envelope::{self, Letter};
use chrono::TimeDelta;
use engine::Operation;
use model::Message;
use rand::RngExt;
use tower::ServiceExt;

use super::{About, Call, MOST_DELIVERIES, Parcel, World};
use crate::check::{Checked, trouble};
use crate::people::{self, Errand, What};
use crate::points::{CALL, now};
use crate::watch::dead_id;
use crate::weather::Fault;

impl World {
    /// An instance that takes calls.
    pub(super) fn pick(&mut self) -> usize {
        let awake: Vec<usize> =
            (0..self.instances.len()).filter(|i| self.instances[*i].stands_still_until.is_none()).collect();
        match awake.len() {
            // Whoever calls one that stands still waits with it.
            0 => self.dice.random_range(0..self.instances.len()),
            count => awake[self.dice.random_range(0..count)],
        }
    }

    pub(super) fn deliver(&mut self, index: usize) {
        let parcel = self.parcels.swap_remove(index);
        let place = self.pick();
        if let Some(number) = parcel.dead {
            return self.bury(place, number, parcel);
        }
        let Some(router) = self.router(place, &parcel.message) else { return };
        self.note(&format!("delivered {} to {place}", parcel.message.kind()));
        let (headers, body) = envelope::wrap(&parcel.message, "1", self.now(), "simulated", Some(1));
        let mut request = Request::post("/push").body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        self.call(place, About::Delivery(parcel), ask(router, request));
    }

    /// The bus pushes what it gave up on to evaluate, and says how often it tried.
    fn bury(&mut self, place: usize, number: u64, parcel: Parcel) {
        self.note(&format!("gave up on {}", parcel.message.kind()));
        let mut letter = Letter::new(&parcel.message, dead_id(number), self.now());
        for (name, value) in
            [("Subscription", "simulated".to_owned()), ("DeliveryCount", MOST_DELIVERIES.to_string())]
        {
            letter.attributes.insert(format!("CloudPubSubDeadLetterSource{name}"), value);
        }
        let body = letter.push_body("dead-letters", Some(1));
        let request = Request::post("/dead-letters").body(Body::from(body)).unwrap();
        let router = self.instances[place].evaluate.clone();
        self.call(place, About::Delivery(parcel), ask(router, request));
    }

    fn router(&self, place: usize, message: &Message) -> Option<Router> {
        let instance = &self.instances[place];
        match message {
            // Elsewhere nobody waits for the ends of runs.
            Message::RunFinished(_) if self.has_plans => Some(instance.trigger.clone()),
            _ => instance.for_topic(&message.topic()).cloned(),
        }
    }

    pub(super) fn tick(&mut self) {
        let place = self.pick();
        self.note(&format!("tick to {place}"));
        let router = self.instances[place].sweep.clone();
        self.call(place, About::Tick, ask(router, Request::post("/sweep").body(Body::empty()).unwrap()));
    }

    pub(super) fn run_errand(&mut self, what: What) {
        let what = if let What::Steer = what { self.watch.steer(&self.storm) } else { Some(what) };
        let Some(what) = what else { return };
        if let What::Operate(run, Operation::Pause) = what {
            let at = self.now() + TimeDelta::seconds(self.storm.draw(1..400));
            self.errands.push(Errand { at, what: What::Operate(run, Operation::Resume) });
        }
        let place = self.pick();
        self.note(&format!("a person at {place}: {}", in_words(&what)));
        let app = self.instances[place].app.clone();
        self.call(place, About::Errand(what.clone()), people::run(what, app));
    }

    pub(super) fn call(
        &mut self,
        place: usize,
        about: About,
        work: impl Future<Output = bool> + Send + 'static,
    ) {
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

    pub(super) fn hear_answers(&mut self) -> Checked {
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

    /// What was not acknowledged comes again later, but not for ever.
    pub(super) fn again(&mut self, about: About) {
        let later = self.now() + TimeDelta::seconds(self.dice.random_range(1..30));
        match about {
            About::Delivery(parcel) => {
                let deliveries = parcel.deliveries + 1;
                let too_often = deliveries >= MOST_DELIVERIES && !parcel.sure && parcel.dead.is_none();
                let mut dead = parcel.dead;
                if too_often && self.storm.strikes(Fault::DeadLetter, None) {
                    self.dead += 1;
                    dead = Some(self.dead);
                }
                self.parcels.push(Parcel { not_before: later, deliveries, dead, ..parcel });
            }
            About::Errand(what) => self.errands.push(Errand { at: later, what }),
            About::Tick => {}
        }
    }

    /// Messages whose delivery is not answered in time come again, though somebody is still at them.
    pub(super) fn come_again(&mut self, whose: impl Fn(&Call) -> bool) {
        let at = self.now() + TimeDelta::seconds(60);
        let again = self.calls.values().filter(|call| whose(call)).filter_map(|call| match &call.about {
            About::Delivery(parcel) => Some(Parcel { not_before: at, ..parcel.clone() }),
            _ => None,
        });
        self.parcels.extend(again.collect::<Vec<_>>());
    }
}

/// A worker is not named: its id is another each time.
fn in_words(what: &What) -> String {
    match what {
        What::Order(_, kind) => format!("{kind:?}"),
        What::Cancel(run) => format!("cancel {run}"),
        What::Operate(run, operation) => format!("{operation:?} of {run}"),
        What::Plan(step) => format!("{step:?}"),
        What::Signal(..) | What::Answer(..) | What::Register(_) | What::Steer => String::new(),
    }
}

async fn ask(router: Router, request: Request<Body>) -> bool {
    router.oneshot(request).await.unwrap().status().is_success()
}
