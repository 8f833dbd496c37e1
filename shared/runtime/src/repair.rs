//! Repairs of what an inspection found. All of them may be done twice, and by several processes at once.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use engine::Command;
use model::{RunId, VersionId};
use store::{Fault, Finding};
use tracing::{info, warn};

use crate::pipeline;
use crate::pipeline::Pipeline;
use crate::publish;
use crate::publish::Pending;
use crate::{Repairs, Result, Settled};

/// The most repairs of one kind in one transaction.
const BATCH: u32 = 200;

/// The maximum number of rechecks in one transaction: each reads all unfinished tasks of a run.
const MAX_RECHECKS: u32 = 20;

/// How long a dispatched task may stay unclaimed before its message is published again.
const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

impl Repairs<'_> {
    /// The findings about the unfinished runs on the next pages after the given run; without one, also about the system as a
    /// whole. Returns them with the run after which to go on, if there are more.
    pub async fn inspect(
        self,
        mut after: Option<RunId>,
        pages: u32,
    ) -> Result<(Vec<Finding>, Option<RunId>)> {
        let mut findings = Vec::new();
        for _ in 0..pages {
            let inspection = self.runtime.store.inspect(self.runtime.clock.now(), after).await?;
            findings.extend(inspection.findings);
            findings.extend(self.unusable(inspection.versions).await?);
            after = inspection.next;
            if after.is_none() {
                break;
            }
        }
        Ok((findings, after))
    }

    /// The runs among these whose version this program cannot use. Nothing is recorded about them: a newer program may be
    /// able to, and then they continue.
    async fn unusable(self, versions: Vec<(RunId, VersionId)>) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        for (run, version) in versions {
            match self.runtime.graph(version).await {
                Ok(Some(_)) => {}
                Err(error) if error.is_passing() => return Err(error),
                Ok(None) | Err(_) => {
                    found.push(Finding { fault: Fault::Unusable, run: Some(run), count: 1, since: None });
                }
            }
        }
        Ok(found)
    }

    /// Repairs what was found, as far as no person is needed. Returns the findings that it repaired.
    pub async fn repair(self, findings: &[Finding]) -> Result<Vec<Finding>> {
        let (mut repaired, mut seen) = (Vec::new(), BTreeSet::new());
        for finding in findings.iter().filter(|finding| finding.fault.can_be_repaired()) {
            if finding.run.is_some_and(|run| !seen.insert(run)) {
                continue; // Everything that is wrong with a run is repaired together.
            }
            let done = match finding.run {
                Some(run) => self.repair_run(run).await,
                None => self.repair_all(finding.fault).await,
            };
            match done {
                Ok(true) => {
                    info!("Repaired {}: {:?}", finding.fault.name(), finding.run);
                    repaired.push(*finding);
                }
                Ok(false) => {}
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => warn!("{} cannot be repaired: {error}", finding.fault.name()),
            }
        }
        Ok(repaired)
    }

    /// Makes a run's counters match its tasks, and rechecks it. Returns whether anything was wrong.
    pub async fn repair_run(self, run: RunId) -> Result<bool> {
        let (changed, pending) =
            pipeline::despite_conflicts(self.runtime, run, || self.try_repair_run(run)).await?;
        publish::publish(self.runtime, pending).await;
        Ok(changed)
    }

    async fn try_repair_run(self, run: RunId) -> Result<(bool, Pending)> {
        let mut pipeline = Pipeline::open(self.runtime).await?;
        let locked = pipeline.unit().lock(&[run]).await?;
        let Some(row) = locked.first() else { return Ok(Default::default()) };
        let audit = pipeline.unit().audit(run).await?;
        let mut commands = vec![(run, Command::Recount { audit })];
        if !row.state.is_final() {
            commands.push((run, Command::Recheck { claim_timeout: CLAIM_TIMEOUT, served: None }));
        }
        let written = pipeline.settle(locked, &commands, Vec::new()).await?;
        Ok((written.settled.contains(&Settled::Applied), written.pending))
    }

    async fn repair_all(self, fault: Fault) -> Result<bool> {
        let now = self.runtime.clock.now();
        match fault {
            Fault::OverdueTimers => Ok(self.runtime.fire(now, BATCH).await?.applied > 0),
            Fault::UnsentMessages => Ok(self.runtime.relay(now, BATCH).await? > 0),
            Fault::DeadWorkers => self.lose_unknown().await,
            Fault::OverdueRechecks => {
                let due = self.runtime.store.due_rechecks(now, MAX_RECHECKS).await?;
                let commands = due
                    .into_iter()
                    .map(|run| (run, Command::Recheck { claim_timeout: CLAIM_TIMEOUT, served: None }));
                self.settle_some(commands.collect()).await
            }
            _ => Ok(false),
        }
    }

    /// Takes attempts from unregistered workers. The sweep judges registered workers that are silent: it gives them a last
    /// chance and compares no clocks.
    async fn lose_unknown(self) -> Result<bool> {
        let lost = self.runtime.store.lost(&[], BATCH).await?;
        let lose = lost.iter().map(|held| {
            (held.key.run, Command::Lose { task: held.key.task, attempt: held.attempt, worker: held.worker })
        });
        self.settle_some(lose.collect()).await
    }

    async fn settle_some(self, commands: Vec<(RunId, Command)>) -> Result<bool> {
        Ok(self.runtime.settle_all(&commands).await?.contains(&Settled::Applied))
    }
}
