//! Calls to instances: deliveries, ticks and actions, and what happens to those that fail.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use bus::envelope::{self, BusMessage};
use chrono::TimeDelta;
use engine::Operation;
use model::Message;
use rand::RngExt;
use tower::ServiceExt;

use super::{About, Call, Delivery, MAX_DELIVERIES, World};
use crate::check::{Checked, violation};
use crate::fault_points::{CALL, now};
use crate::faults::Fault;
use crate::observer::dead_id;
use crate::people::{self, Action, ScheduledAction};

impl World {
    /// An instance that accepts calls.
    pub(super) fn pick(&mut self) -> usize {
        let awake: Vec<usize> =
            (0..self.instances.len()).filter(|i| self.instances[*i].frozen_until.is_none()).collect();
        match awake.len() {
            // A call to a frozen instance waits with it.
            0 => self.rng.random_range(0..self.instances.len()),
            count => awake[self.rng.random_range(0..count)],
        }
    }

    pub(super) fn deliver(&mut self, index: usize) {
        let delivery = self.deliveries.swap_remove(index);
        let place = self.pick();
        if let Some(number) = delivery.dead {
            return self.dead_letter(place, number, delivery);
        }
        let Some(router) = self.router(place, &delivery.message) else { return };
        self.note(&format!("delivered {} to {place}", delivery.message.kind()));
        let (headers, body) = envelope::wrap(&delivery.message, "1", self.now(), "simulated", Some(1));
        let mut request = Request::post("/push").body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        self.call(place, About::Delivery(Box::new(delivery)), ask(router, request));
    }

    /// The bus pushes a message it gave up on to evaluate, with the number of deliveries.
    fn dead_letter(&mut self, place: usize, number: u64, delivery: Delivery) {
        self.note(&format!("gave up on {}", delivery.message.kind()));
        let mut letter = BusMessage::new(&delivery.message, dead_id(number), self.now());
        for (name, value) in
            [("Subscription", "simulated".to_owned()), ("DeliveryCount", MAX_DELIVERIES.to_string())]
        {
            letter.attributes.insert(format!("CloudPubSubDeadLetterSource{name}"), value);
        }
        let body = letter.push_body("dead-letters", Some(1));
        let request = Request::post("/dead-letters").body(Body::from(body)).unwrap();
        let router = self.instances[place].evaluate.clone();
        self.call(place, About::Delivery(Box::new(delivery)), ask(router, request));
    }

    fn router(&self, place: usize, message: &Message) -> Option<Router> {
        let instance = &self.instances[place];
        match message {
            // In other worlds nothing waits for the ends of runs.
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

    pub(super) fn act(&mut self, what: Action) {
        let what = if let Action::Steer = what { self.observer.steer(&self.faults) } else { Some(what) };
        let Some(what) = what else { return };
        if let Action::Operate(run, Operation::Pause) = what {
            let at = self.now() + TimeDelta::seconds(self.faults.draw(1..400));
            self.actions.push(ScheduledAction { at, action: Action::Operate(run, Operation::Resume) });
        }
        let place = self.pick();
        self.note(&format!("a person at {place}: {}", in_words(&what)));
        let app = self.instances[place].app.clone();
        self.call(place, About::Action(what.clone()), people::run(what, app));
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

    pub(super) fn collect_answers(&mut self) -> Checked {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        for (id, well) in answers {
            if let Some(call) = self.calls.remove(&id).filter(|_| !well) {
                self.retry_later(call.about);
            }
        }
        let broken = self.calls.values_mut().find(|call| call.handle.is_finished());
        match broken.map(|call| now(&mut call.handle)) {
            Some(Err(error)) => violation("no_handler_breaks_down", error.to_string()),
            _ => Ok(()),
        }
    }

    /// Schedules a failed call again, but not forever.
    pub(super) fn retry_later(&mut self, about: About) {
        let later = self.now() + TimeDelta::seconds(self.rng.random_range(1..30));
        match about {
            About::Delivery(delivery) => {
                let attempts = delivery.attempts + 1;
                let too_often = attempts >= MAX_DELIVERIES && !delivery.sure && delivery.dead.is_none();
                let mut dead = delivery.dead;
                if too_often && self.faults.inject(Fault::DeadLetter, None) {
                    self.dead += 1;
                    dead = Some(self.dead);
                }
                self.deliveries.push(Delivery { not_before: later, attempts, dead, ..*delivery });
            }
            About::Action(what) => self.actions.push(ScheduledAction { at: later, action: what }),
            About::Worker(number) => self.answer_worker(number, None),
            // A queue repeats its call; the scheduler ticks again anyhow.
            About::Tick if self.shared.wake_ups.is_some() => self.wake_ups.push(later),
            About::Tick => {}
        }
    }

    /// Redelivers messages whose delivery was not acknowledged in time although a handler is still busy with them.
    pub(super) fn redeliver(&mut self, whose: impl Fn(&Call) -> bool) {
        let at = self.now() + TimeDelta::seconds(60);
        let again = self.calls.values().filter(|call| whose(call)).filter_map(|call| match &call.about {
            About::Delivery(delivery) => Some(Delivery { not_before: at, ..(**delivery).clone() }),
            _ => None,
        });
        self.deliveries.extend(again.collect::<Vec<_>>());
    }
}

/// A worker is not named: its id is another each time.
fn in_words(what: &Action) -> String {
    match what {
        Action::WorkerCommand(_, kind) => format!("{kind:?}"),
        Action::Cancel(run) => format!("cancel {run}"),
        Action::Operate(run, operation) => format!("{operation:?} of {run}"),
        Action::Plan(step) => format!("{step:?}"),
        Action::Signal(..) | Action::Answer(..) | Action::Register(_) | Action::Steer => String::new(),
    }
}

async fn ask(router: Router, request: Request<Body>) -> bool {
    router.oneshot(request).await.unwrap().status().is_success()
}

#[cfg(test)]
mod tests {
    use model::TenantId;
    use model::message::{PollDue, PollTarget, TimerArmed};

    use super::*;
    use crate::faults::FaultRates;

    /// Whatever its kind: even a poll, or a timer's message that a handler is about to store.
    #[test]
    fn no_world_ends_before_the_messages_that_the_bus_gave_up_on_are_dead_letters() {
        let at = World::new(0, FaultRates::none(), None).now();
        let target = PollTarget::Trigger { workflow: "w".into(), name: "t".into() };
        let poll = Message::PollDue(PollDue { tenant: TenantId::DEFAULT, queue: "light".into(), target });
        for message in [poll, Message::TimerArmed(TimerArmed { wake_at: at })] {
            let mut world = World::new(0, FaultRates::none(), None);
            world.dead = 1;
            world.deliveries.push(Delivery { dead: Some(1), ..Delivery::new(message, at) });
            assert!(!world.is_over(), "it is in flight");
            world.deliver(0);
            assert!(!world.is_over(), "a handler stores it");
            assert!(world.play().is_ok());
        }
    }
}
