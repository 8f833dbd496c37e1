//! The workers outside of a world: they come, ask instances for work, stand still, vanish and leave.

use chrono::TimeDelta;

use super::{About, World};
use crate::check::{Checked, violation};
use crate::faults::Fault;
use crate::leasing::{self, Identity, RemoteWorker, Request, Response};

/// How many workers each tenant has.
const WORKERS: usize = 2;

/// A response on its way to a worker, by the worker's number.
pub(super) type Responses = std::sync::Arc<std::sync::Mutex<Vec<(u64, Response)>>>;

impl World {
    /// The first worker that acts now.
    pub(super) fn due_worker(&self) -> Option<usize> {
        let now = self.now();
        self.outside.iter().position(|worker| worker.next_at().is_some_and(|at| at <= now))
    }

    /// Lets a worker make its next request, unless something happens to it.
    pub(super) fn drive_worker(&mut self, place: usize) {
        let now = self.now();
        let identity = self.outside[place].identity;
        let number = identity.number;
        if self.faults.inject(Fault::Vanish, None) {
            if self.faults.draw(0..2) == 0 {
                self.note(&format!("worker {number} vanishes"));
                self.outside.remove(place);
            } else {
                let until = now + TimeDelta::seconds(self.faults.draw(61..400));
                self.note(&format!("worker {number} stands still until {until}"));
                self.outside[place].stand_still(until);
            }
            return;
        }
        if self.faults.inject(Fault::DrainWorker, None) {
            self.note(&format!("worker {number} drains"));
            self.outside[place].drain();
        }
        let Some(request) = self.outside[place].ask(now) else { return };
        self.note(&format!("worker {number} {request}"));
        self.send(identity, request);
    }

    fn send(&mut self, identity: Identity, request: Request) {
        let place = self.pick();
        let (app, responses) = (self.instances[place].app.clone(), self.responses.clone());
        let checks = self.shared.planted.report_checks();
        let served = async move {
            match leasing::serve(app, identity, request, checks).await {
                Ok(response) => {
                    responses.lock().unwrap().push((identity.number, response));
                    true
                }
                Err(_) => false,
            }
        };
        self.call(place, About::Worker(identity.number), served);
    }

    /// Hands responses to their workers, except those that are lost.
    pub(super) fn collect_responses(&mut self) -> Checked {
        let responses = std::mem::take(&mut *self.responses.lock().unwrap());
        for (number, response) in responses {
            let mut workers = self.outside.iter().filter(|worker| worker.identity.number == number);
            if matches!(response, Response::Refused) && workers.any(RemoteWorker::repeats) {
                return violation("a_repeated_report_is_accepted", format!("it refused worker {number}"));
            }
            let is_lost = self.faults.inject(Fault::LoseResponse, None);
            self.answer_worker(number, Some(response).filter(|_| !is_lost));
        }
        self.outside.retain(|worker| !worker.is_gone);
        self.keep_workers();
        self.shared.ledger.passed_over()
    }

    /// A worker that has vanished gets no response.
    pub(super) fn answer_worker(&mut self, number: u64, response: Option<Response>) {
        let now = self.now();
        let worker = self.outside.iter_mut().find(|worker| worker.identity.number == number);
        if let Some(worker) = worker {
            worker.answered(now, response);
        }
    }

    /// While runs go on, workers that are gone are replaced; afterwards all leave.
    fn keep_workers(&mut self) {
        if !self.has_leases {
            return;
        }
        if self.observer.all_ended() {
            return self.outside.iter_mut().for_each(RemoteWorker::drain);
        }
        let now = self.now();
        for tenant in self.observer.tenants.clone() {
            let serving = self
                .outside
                .iter()
                .filter(|worker| worker.identity.tenant == tenant && !worker.is_draining());
            for _ in serving.count()..WORKERS {
                self.last_outside += 1;
                let identity = Identity { number: self.last_outside, tenant };
                self.outside.push(RemoteWorker::new(identity, self.seed, now));
            }
        }
    }
}
