//! Group commit: submissions that arrive while a transaction is under way share the next one.
//!
//! ```text
//!           next_batch              committed
//! pending ─────────────▶ in a batch ───────────▶ settled ──┐
//!    ▲                   │   │   │                         ├─▶ notified
//!    │                   │   │   └─ failed, alone ▶ failed ┘
//!    │                   │   └─ failed, with others: half of it is the next batch
//!    └─ submitted again ─┘ the caller with the turn went away
//! ```
//!
//! Nothing runs in the background. A caller adds its submission to the list and waits for a turn, or for another caller
//! that takes the submission along. A turn settles the whole list in one transaction. Under load batches grow by
//! themselves; without load a batch is one submission that waits for nothing.

mod halving;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::Command;
use futures::future::join_all;
use model::message::TaskDispatched;
use model::{Message, Run, RunId};
use tokio::sync::{Semaphore, oneshot};

use crate::counting;
use crate::inline_next;
use crate::pipeline;
use crate::pipeline::Written;
use crate::publish;
use crate::publish::Pending;
use crate::start::Prepared;
use crate::{Error, Result, Runtime, Settled};

pub(crate) use halving::{Halving, catching_panics};

/// The most submissions in one transaction.
const MAX_BATCH: usize = 200;

/// The most transactions at a time: while one waits for its commit, the next can be prepared.
const MAX_CONCURRENT_TURNS: usize = 2;

/// An item that is settled together with others.
#[derive(Clone)]
pub(crate) enum Submission {
    /// A command about a run, and the queue whose inline task the caller would run next.
    Settle(RunId, Command, Option<String>),
    /// A run to create. It is created, or the submission fails.
    Create(Arc<Prepared>),
}

impl Submission {
    pub(crate) fn run(&self) -> RunId {
        match self {
            Self::Settle(run, ..) => *run,
            Self::Create(prepared) => prepared.run.id,
        }
    }
}

/// The outcome of a submission.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The command was settled; its caller runs this task next.
    Settled(Settled, Option<TaskDispatched>),
    Created(Box<Run>),
}

/// A listed submission, as its caller waits for it.
struct Listed<O> {
    delivery: Delivery<O>,
    notified: oneshot::Receiver<()>,
}

/// Where an outcome is left for the caller, as soon as it is certain.
struct Delivery<O>(Arc<Mutex<Option<Result<O>>>>);

impl<O> Clone for Delivery<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Waiting<S: Settle> {
    submission: S::Submission,
    delivery: Delivery<S::Outcome>,
    /// Sent to, or dropped, once the caller with the turn is done with the submission.
    notify: oneshot::Sender<()>,
}

impl<S: Settle> Waiting<S> {
    fn deliver(&self, outcome: Result<S::Outcome>) {
        *lock(&self.delivery.0) = Some(outcome);
    }

    /// Wakes the caller. Returns the outcome if the caller went away.
    fn notify(self) -> Option<S::Outcome> {
        match self.notify.send(()) {
            Ok(()) => None,
            Err(()) => lock(&self.delivery.0).take()?.ok(),
        }
    }
}

/// How an inbox settles a batch.
pub(crate) trait Settle: Sized + Sync {
    type Submission: Clone + Send + Sync;
    type Outcome: Send;
    /// The work that remains once all outcomes are certain.
    type After: Send;

    /// The run that a submission is about, and whether it creates it.
    fn subject(submission: &Self::Submission) -> (RunId, bool);

    /// Settles submissions in one transaction.
    fn settle(
        &self,
        batch: Vec<Self::Submission>,
    ) -> impl Future<Output = Result<(Vec<Self::Outcome>, Self::After)>> + Send;

    fn after(&self, after: Self::After) -> impl Future<Output = ()> + Send;

    /// Handles outcomes whose callers went away.
    fn abandoned(&self, outcomes: Vec<Self::Outcome>) -> impl Future<Output = ()> + Send;
}

/// The submissions that wait for a turn.
pub(crate) struct Inbox<S: Settle> {
    waiting: Mutex<Vec<Waiting<S>>>,
    turns: Semaphore,
}

impl<S: Settle> Default for Inbox<S> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turns: Semaphore::new(MAX_CONCURRENT_TURNS) }
    }
}

impl<S: Settle> Inbox<S> {
    /// Settles one submission, in one transaction with others that arrive at the same time.
    pub(crate) async fn submit(&self, settler: &S, submission: S::Submission) -> Result<S::Outcome> {
        let listed = self.list(submission.clone());
        self.wait(settler, submission, listed).await
    }

    /// Settles submissions. All are listed before any of them has a turn, so that they share transactions.
    pub(crate) async fn submit_all(
        &self,
        settler: &S,
        submissions: Vec<S::Submission>,
    ) -> Vec<Result<S::Outcome>> {
        let listed: Vec<_> =
            submissions.into_iter().map(|submission| (submission.clone(), self.list(submission))).collect();
        join_all(listed.into_iter().map(|(submission, listed)| self.wait(settler, submission, listed))).await
    }

    fn list(&self, submission: S::Submission) -> Listed<S::Outcome> {
        let (notify, notified) = oneshot::channel();
        let delivery = Delivery(Arc::default());
        lock(&self.waiting).push(Waiting { submission, delivery: delivery.clone(), notify });
        Listed { delivery, notified }
    }

    /// Waits until a listed submission is settled, by a turn of this caller or of another one.
    async fn wait(
        &self,
        settler: &S,
        submission: S::Submission,
        mut listed: Listed<S::Outcome>,
    ) -> Result<S::Outcome> {
        loop {
            let Listed { delivery, mut notified } = listed;
            let mut over = false;
            // As long as the submission is listed, no other caller has taken it along: this one goes on waiting for a
            // turn of its own. A turn need not take it along either, where the batch is full.
            while !over && self.lists(&delivery) {
                tokio::select! {
                    biased;
                    _ = &mut notified => over = true,
                    turn = self.turns.acquire() => {
                        let _turn = turn.expect("turns are never closed");
                        self.take_turn(settler).await;
                    }
                }
            }
            if !over {
                // Another caller has it in its batch. An error means that the caller went away, too.
                let _ = notified.await;
            }
            let outcome = lock(&delivery.0).take();
            if let Some(outcome) = outcome {
                return outcome;
            }
            // The caller that had our submission went away before the commit, so it is submitted again. If the commit
            // happened after all, the second try finds the command stale.
            listed = self.list(submission.clone());
        }
    }

    /// Settles the submissions that wait, in batches.
    async fn take_turn(&self, settler: &S) {
        let mut batches = Halving::of(self.next_batch());
        while let Some(batch) = batches.next() {
            match settle_and_deliver(settler, &batch).await {
                Ok(()) => notify(settler, batch).await,
                Err(error) => {
                    let Some(failed) = batches.failed(batch, &error) else { continue };
                    let alone = failed.len() == 1;
                    let message = error.to_string();
                    // The first gets the error itself: where it failed alone, callers match on it.
                    let mut error = Some(error).filter(|_| alone);
                    for waiting in &failed {
                        let error = error.take().unwrap_or_else(|| Error::Together(message.clone()));
                        waiting.deliver(Err(error));
                    }
                    notify(settler, failed).await;
                }
            }
        }
    }

    /// Whether a submission still waits for a turn.
    fn lists(&self, delivery: &Delivery<S::Outcome>) -> bool {
        lock(&self.waiting).iter().any(|waiting| Arc::ptr_eq(&waiting.delivery.0, &delivery.0))
    }

    /// The submissions of the next transaction. A run that one transaction creates is visible to commands only in a
    /// later one.
    fn next_batch(&self) -> Vec<Waiting<S>> {
        let mut waiting = lock(&self.waiting);
        let (mut runs, mut created, mut size) = (BTreeSet::new(), BTreeSet::new(), 0);
        let joins = |waiting: &Waiting<S>| {
            let (run, creates) = S::subject(&waiting.submission);
            let apart = match creates {
                true => runs.contains(&run) || !created.insert(run),
                false => created.contains(&run),
            };
            let joins = !apart && size < MAX_BATCH;
            if joins {
                runs.insert(run);
                size += 1;
            }
            joins
        };
        let (batch, left) = waiting.drain(..).partition(joins);
        *waiting = left;
        batch
    }
}

/// Settles a batch. All outcomes are certain before anything is published: a caller that goes away while it publishes
/// leaves no other caller waiting.
async fn settle_and_deliver<S: Settle>(settler: &S, batch: &[Waiting<S>]) -> Result<()> {
    let submissions = batch.iter().map(|waiting| waiting.submission.clone()).collect();
    let since = std::time::Instant::now();
    let settled = catching_panics(settler.settle(submissions)).await;
    counting::settled(since);
    let (outcomes, after) = settled?;
    for (waiting, outcome) in batch.iter().zip(outcomes) {
        waiting.deliver(Ok(outcome));
    }
    settler.after(after).await;
    Ok(())
}

async fn notify<S: Settle>(settler: &S, batch: Vec<Waiting<S>>) {
    let abandoned = batch.into_iter().filter_map(Waiting::notify).collect();
    settler.abandoned(abandoned).await;
}

impl Settle for Runtime {
    type Submission = Submission;
    type Outcome = Outcome;
    type After = Pending;

    fn subject(submission: &Submission) -> (RunId, bool) {
        (submission.run(), matches!(submission, Submission::Create(_)))
    }

    async fn settle(&self, batch: Vec<Submission>) -> Result<(Vec<Outcome>, Pending)> {
        let (mut commands, mut prepared, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for submission in batch {
            match submission {
                Submission::Settle(run, command, queue) => {
                    kinds.push(Some((run, queue)));
                    commands.push((run, command));
                }
                Submission::Create(start) => {
                    kinds.push(None);
                    prepared.push(start);
                }
            }
        }
        let first = commands.first().map(|(run, _)| *run).or(prepared.first().map(|start| start.run.id));
        let run = first.expect("a batch is not empty");
        let written =
            pipeline::despite_conflicts(self, run, || pipeline::try_write(self, &commands, &prepared))
                .await?;
        let Written { settled, created, mut pending } = written;
        let takers = kinds.iter().flatten();
        let mut next = inline_next::hand_over(self, takers, &mut pending.messages).into_iter();
        let (mut settled, mut created) = (settled.into_iter(), created.into_iter());
        let outcome = |kind: Option<_>| match kind {
            Some(_) => {
                let settled = settled.next().expect("each command is settled");
                Outcome::Settled(settled, next.next().flatten())
            }
            None => Outcome::Created(Box::new(created.next().expect("each run is created"))),
        };
        Ok((kinds.into_iter().map(outcome).collect(), pending))
    }

    async fn after(&self, pending: Pending) {
        publish::publish(self, pending).await;
    }

    /// A task that a caller would have run next is for anyone.
    async fn abandoned(&self, outcomes: Vec<Outcome>) {
        let next = outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Settled(_, next) => next,
            Outcome::Created(_) => None,
        });
        let messages = next.map(Message::TaskDispatched).collect();
        publish::publish(self, Pending { messages, ..Pending::default() }).await;
    }
}

impl Runtime {
    /// Settles one command, in one transaction with others that come at the same time.
    pub async fn settle(&self, run: RunId, command: Command) -> Result<Settled> {
        Ok(settle_then(self, run, command, None).await?.0)
    }
}

/// Settles one command. The caller runs the returned task of that queue next, if there is one.
pub(crate) async fn settle_then(
    runtime: &Runtime,
    run: RunId,
    command: Command,
    queue: Option<String>,
) -> Result<(Settled, Option<TaskDispatched>)> {
    match runtime.inbox.submit(runtime, Submission::Settle(run, command, queue)).await? {
        Outcome::Settled(settled, next) => Ok((settled, next)),
        Outcome::Created(_) => unreachable!("a command creates no run"),
    }
}

/// Creates one run, in a batch with whatever else is submitted.
pub(crate) async fn submit_run(runtime: &Runtime, prepared: Arc<Prepared>) -> Result<Run> {
    match runtime.inbox.submit(runtime, Submission::Create(prepared)).await? {
        Outcome::Created(run) => Ok(*run),
        Outcome::Settled(..) => unreachable!("a run is created or refused"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is held")
}

#[cfg(test)]
mod tests;
