//! What strikes: messages on their way, those who stand at a point, whole instances, the store and the bus.

use std::time::Duration;

use chrono::TimeDelta;
use model::{Instant, Message, OrderKind};

use super::{Parcel, World};
use crate::check::Checked;
use crate::people::{Errand, What};
use crate::points::Interrupted;
use crate::weather::{Fault, Point};

impl World {
    /// What was away or stood still is back.
    pub(super) fn bring_back(&mut self, now: Instant) {
        let back = |at: &mut Option<Instant>| *at = at.filter(|at| *at > now);
        self.instances.iter_mut().for_each(|instance| back(&mut instance.stands_still_until));
        back(&mut self.store_back);
        back(&mut self.bus_back);
        self.ground.points.set_away(self.store_back.is_some(), self.bus_back.is_some());
    }

    /// What strikes a whole instance, the store or the bus.
    pub(super) fn strike(&mut self, now: Instant) {
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
        if self.storm.strikes(Fault::Stop, None) {
            let place = self.storm.draw(0..self.instances.len() as i64) as usize;
            let grace = self.storm.draw(0..60).unsigned_abs();
            self.instances[place].ask_to_end(Duration::from_secs(grace));
            self.note(&format!("instance {place} is asked to end within {grace} s"));
        }
        self.give_orders(now);
        if self.storm.strikes(Fault::Impatience, None) {
            self.come_again(|_| true);
        }
    }

    /// Somebody tells a worker to end, one that is known because it holds something.
    fn give_orders(&mut self, now: Instant) {
        let known = self.watch.workers();
        let mut busy = self.instances.iter().map(|instance| instance.worker.id());
        let Some(worker) = busy.find(|worker| known.contains(worker)) else { return };
        if self.storm.strikes(Fault::Order, None) {
            let kind = [OrderKind::Drain, OrderKind::Kill][self.storm.draw(0..2) as usize];
            self.errands.push(Errand { at: now, what: What::Order(worker, kind) });
        }
    }

    /// Takes what was published: some of it is lost, some comes twice, some late.
    pub(super) fn collect(&mut self) -> Checked {
        let now = self.now();
        for message in self.ground.bag.take() {
            self.watch.said(&message)?;
            let censored = self.censor.as_mut().is_some_and(|lost| lost(&message));
            // Nobody says it again: that it comes at last is what the bus promises.
            let sure = self.has_plans && matches!(message, Message::RunFinished(_));
            let copies = 1 + usize::from(self.storm.strikes(Fault::Duplicate, None));
            for _ in 0..copies {
                if censored || !sure && self.storm.strikes(Fault::Drop, None) {
                    self.note(&format!("lost {}", message.kind()));
                    continue;
                }
                let late = self.storm.strikes(Fault::Late, None);
                let delay = TimeDelta::seconds(if late { self.storm.draw(1..3600) } else { 0 });
                let message = message.clone();
                self.parcels.push(Parcel { sure, ..Parcel::new(message, now + delay) });
            }
        }
        Ok(())
    }

    /// Lets someone go on from where they stand, unless something happens to them there.
    pub(super) fn go_on(&mut self, stop: u64) {
        let (instance, call, point) = self.ground.points.place(stop);
        if self.storm.strikes(Fault::Crash, Some(point)) {
            return self.replace(instance);
        }
        if self.storm.strikes(Fault::Die, Some(point)) {
            // What an instance does by itself ends only with it.
            let Some(call) = call.and_then(|id| self.calls.remove(&id)) else {
                return self.replace(instance);
            };
            self.note(&format!("killed a handler at {point:?}"));
            call.handle.abort();
            return self.again(call.about);
        }
        let can_be_slow = Fault::Slow.points().contains(&point) && !self.ground.points.is_slow(stop);
        if can_be_slow && self.storm.strikes(Fault::Slow, Some(point)) {
            let holds_others_up = matches!(point, Point::BeforeCommit | Point::BeforeSharedCommit);
            let longest = if holds_others_up { 30 } else { 300 };
            let until = self.now() + TimeDelta::seconds(self.storm.draw(1..longest));
            return self.ground.points.slow_down(stop, until);
        }
        let fails = point != Point::Turn
            && (self.ground.points.is_away(point) || self.storm.strikes(Fault::Fail, Some(point)));
        self.ground.points.release(stop, if fails { Err(Interrupted) } else { Ok(()) });
    }

    /// An instance ends where it stands, and a fresh one takes its place.
    pub(super) fn replace(&mut self, id: u64) {
        let Some(place) = self.instances.iter().position(|instance| instance.id == id) else { return };
        self.note(&format!("instance {place} ends and is replaced"));
        self.instances[place] = self.fresh_instance();
        let lost: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.instance == id).map(|(id, _)| *id).collect();
        for call in lost.into_iter().filter_map(|id| self.calls.remove(&id)).collect::<Vec<_>>() {
            self.again(call.about);
        }
    }
}
