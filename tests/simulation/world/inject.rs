//! Injects faults into messages in flight, handlers at fault points, whole instances, the store and the bus.

use std::time::Duration;

use chrono::TimeDelta;
use model::{Instant, Message, WorkerCommandKind};

use super::{Delivery, World};
use crate::check::Checked;
use crate::fault_points::Interrupted;
use crate::faults::{DUPLICATED_WAKE_UP, Fault, LATE_WAKE_UP, LOST_WAKE_UP, Point};
use crate::people::{Action, ScheduledAction};

impl World {
    /// Ends outages and freezes that are over.
    pub(super) fn recover(&mut self, now: Instant) {
        let back = |at: &mut Option<Instant>| *at = at.filter(|at| *at > now);
        self.instances.iter_mut().for_each(|instance| back(&mut instance.frozen_until));
        back(&mut self.store_back);
        back(&mut self.bus_back);
        self.shared.points.set_away(self.store_back.is_some(), self.bus_back.is_some());
    }

    /// Injects faults into whole instances, the store and the bus.
    pub(super) fn inject_faults(&mut self, now: Instant) {
        if self.faults.inject(Fault::StoreOutage, None) {
            self.store_back = Some(now + TimeDelta::seconds(self.faults.draw(1..180)));
            self.note("the store is away");
        }
        if self.faults.inject(Fault::BusOutage, None) {
            self.bus_back = Some(now + TimeDelta::seconds(self.faults.draw(1..180)));
            self.note("the bus is away");
        }
        if self.faults.inject(Fault::Freeze, None) {
            let place = self.faults.draw(0..self.instances.len() as i64) as usize;
            let until = now + TimeDelta::seconds(self.faults.draw(61..400));
            self.instances[place].freeze(until);
            self.note(&format!("instance {place} is frozen until {until}"));
            let id = self.instances[place].id;
            self.redeliver(|call| call.instance == id);
        }
        if self.faults.inject(Fault::Stop, None) {
            let place = self.faults.draw(0..self.instances.len() as i64) as usize;
            let grace = self.faults.draw(0..60).unsigned_abs();
            self.instances[place].ask_to_end(Duration::from_secs(grace));
            self.note(&format!("instance {place} is asked to stop within {grace} s"));
        }
        self.command_workers(now);
        if self.faults.inject(Fault::Redeliver, None) {
            self.redeliver(|_| true);
        }
    }

    /// A person tells a known worker to stop.
    fn command_workers(&mut self, now: Instant) {
        let known = self.observer.workers();
        let mut busy = self.instances.iter().map(|instance| instance.worker.id());
        let Some(worker) = busy.find(|worker| known.contains(worker)) else { return };
        if self.faults.inject(Fault::WorkerCommand, None) {
            let kind = [WorkerCommandKind::Drain, WorkerCommandKind::Kill][self.faults.draw(0..2) as usize];
            self.actions.push(ScheduledAction { at: now, action: Action::WorkerCommand(worker, kind) });
        }
    }

    /// Takes what was published: some messages are lost, some are duplicated, some are late.
    pub(super) fn collect(&mut self) -> Checked {
        let now = self.now();
        for message in self.shared.in_flight.take() {
            self.observer.published(&message)?;
            let is_lost = self.loss_rule.as_mut().is_some_and(|lost| lost(&message));
            // Nothing publishes it again: the bus guarantees that it arrives.
            let sure = self.has_plans && matches!(message, Message::RunFinished(_));
            let copies = 1 + usize::from(self.faults.inject(Fault::Duplicate, None));
            for _ in 0..copies {
                if is_lost || !sure && self.faults.inject(Fault::Drop, None) {
                    self.note(&format!("lost {}", message.kind()));
                    continue;
                }
                let late = self.faults.inject(Fault::Late, None);
                let delay = TimeDelta::seconds(if late { self.faults.draw(1..3600) } else { 0 });
                let message = message.clone();
                self.deliveries.push(Delivery { sure, ..Delivery::new(message, now + delay) });
            }
        }
        self.collect_wake_ups();
        Ok(())
    }

    /// Takes the requested wake-ups, with the faults of messages. Many for one second are one.
    fn collect_wake_ups(&mut self) {
        let Some(requested) = self.shared.wake_ups.clone() else { return };
        for due_at in requested.take() {
            if self.wake_ups.contains(&due_at) {
                continue;
            }
            let is_duplicated = self.faults.inject(Fault::Duplicate, None);
            if is_duplicated {
                self.note(DUPLICATED_WAKE_UP);
            }
            for _ in 0..1 + usize::from(is_duplicated) {
                if self.faults.inject(Fault::Drop, None) {
                    self.note(LOST_WAKE_UP);
                    continue;
                }
                let is_late = self.faults.inject(Fault::Late, None);
                if is_late {
                    self.note(LATE_WAKE_UP);
                }
                let delay = TimeDelta::seconds(if is_late { self.faults.draw(1..3600) } else { 0 });
                self.wake_ups.push(due_at + delay);
            }
        }
    }

    /// Resumes a handler at its fault point, or injects a fault there.
    pub(super) fn go_on(&mut self, stop: u64) {
        let (instance, call, point) = self.shared.points.place(stop);
        if self.faults.inject(Fault::Crash, Some(point)) {
            return self.replace(instance);
        }
        if self.faults.inject(Fault::Die, Some(point)) {
            // Background work of an instance ends only with the instance.
            let Some(call) = call.and_then(|id| self.calls.remove(&id)) else {
                return self.replace(instance);
            };
            self.note(&format!("killed a handler at {point:?}"));
            call.handle.abort();
            return self.retry_later(call.about);
        }
        let can_be_slow = Fault::Slow.points().contains(&point) && !self.shared.points.is_slow(stop);
        if can_be_slow && self.faults.inject(Fault::Slow, Some(point)) {
            let holds_others_up = matches!(point, Point::BeforeCommit | Point::BeforeSharedCommit);
            let longest = if holds_others_up { 30 } else { 300 };
            let until = self.now() + TimeDelta::seconds(self.faults.draw(1..longest));
            return self.shared.points.slow_down(stop, until);
        }
        let fails = point != Point::Turn
            && (self.shared.points.is_away(point) || self.faults.inject(Fault::Fail, Some(point)));
        self.shared.points.release(stop, if fails { Err(Interrupted) } else { Ok(()) });
    }

    /// Ends an instance immediately and starts a new one in its slot.
    pub(super) fn replace(&mut self, id: u64) {
        let Some(place) = self.instances.iter().position(|instance| instance.id == id) else { return };
        self.note(&format!("instance {place} ends and is replaced"));
        self.instances[place] = self.fresh_instance();
        let lost: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.instance == id).map(|(id, _)| *id).collect();
        for call in lost.into_iter().filter_map(|id| self.calls.remove(&id)).collect::<Vec<_>>() {
            self.retry_later(call.about);
        }
    }
}
