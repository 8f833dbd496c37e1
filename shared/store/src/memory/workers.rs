//! Workers: which are alive, what each of them holds, and their commands.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Instant, ResourceUsage, ServedQueues, WorkerCommand, WorkerCommandKind, WorkerFacts, WorkerId};

use super::Memory;
use super::tables::Tables;
use crate::workers::DEAD_WORKER_TTL;
use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence, Workers, normal};

#[async_trait]
impl Workers for Memory {
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply> {
        let mut tables = self.shared.tables();
        let Heartbeat { worker, facts, at } = normal::heartbeat(sign);
        // A clock that was turned back must not make a living worker look silent.
        let later = |row: &mut WorkerRow| {
            let after = row.heartbeat_at + TimeDelta::microseconds(1);
            row.heartbeat_at = if at < row.heartbeat_at { after } else { at };
        };
        let fresh = WorkerRow { facts: None, heartbeat_at: at, command: None, done: 0, dead_at: None };
        let row = tables.workers.entry(worker).and_modify(later).or_insert(fresh);
        row.facts = facts.or(row.facts.take());
        row.dead_at = None;
        let command = row.command.clone();
        Ok(HeartbeatReply { holds: held(&tables).filter(|held| held.worker == worker).collect(), command })
    }

    async fn check_in(&self, sign: &Heartbeat, every: TimeDelta) -> Result<Option<WorkerCommand>> {
        let recent = self.shared.tables().workers.get(&sign.worker).and_then(|row| {
            let recent = row.dead_at.is_none() && row.heartbeat_at > sign.at - every;
            recent.then(|| row.command.clone())
        });
        match recent {
            Some(command) => Ok(command),
            None => {
                if let Some(row) = self.shared.tables().workers.get_mut(&sign.worker)
                    && row.dead_at.is_some()
                {
                    // Another process of that name: commands were for the one before.
                    row.command = None;
                }
                Ok(self.beat(sign).await?.command)
            }
        }
    }

    async fn report_usage(&self, worker: WorkerId, usage: &ResourceUsage) -> Result<()> {
        let mut tables = self.shared.tables();
        let facts = tables.workers.get_mut(&worker).and_then(|row| row.facts.as_mut());
        if let Some(remote) = facts.and_then(|facts| facts.remote.as_mut()) {
            remote.usage = Some(*usage);
        }
        Ok(())
    }

    async fn count_done(&self, done: &[(WorkerId, u32)]) -> Result<()> {
        let mut tables = self.shared.tables();
        for (worker, count) in done {
            if let Some(row) = tables.workers.get_mut(worker) {
                row.done += u64::from(*count);
            }
        }
        Ok(())
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>> {
        Ok(self.shared.tables().workers.remove(&worker).and_then(|row| row.command))
    }

    async fn command_worker(
        &self,
        worker: WorkerId,
        command: &WorkerCommand,
    ) -> Result<Option<WorkerCommand>> {
        let mut tables = self.shared.tables();
        let Some(row) = tables.workers.get_mut(&worker) else { return Ok(None) };
        let in_force = row.command.as_ref().map(|command| command.kind);
        if in_force.is_none()
            || (in_force == Some(WorkerCommandKind::Drain) && command.kind == WorkerCommandKind::Kill)
        {
            row.command = Some(normal::worker_command(command));
        }
        Ok(row.command.clone())
    }

    async fn served_queues(&self) -> Result<ServedQueues> {
        let tables = self.shared.tables();
        let living = tables.workers.values().filter(|row| row.dead_at.is_none());
        let served = living.filter_map(|row| {
            let facts = row.facts.as_ref()?;
            let remote = facts.remote.as_ref()?;
            Some((remote.tenant, facts.queue.clone()?, remote.abilities()))
        });
        Ok(served.collect())
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        Ok(self.shared.tables().silent(since, limit))
    }

    async fn own_workers(&self) -> Result<Vec<Silence>> {
        let tables = self.shared.tables();
        let is_own = |row: &WorkerRow| row.facts.as_ref().is_none_or(|facts| facts.remote.is_none());
        let own = tables.workers.iter().filter(|(_, row)| row.dead_at.is_none() && is_own(row));
        Ok(own.map(|(worker, row)| Silence { worker: *worker, heartbeat_at: row.heartbeat_at }).collect())
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>> {
        Ok(self.shared.tables().lost(silent, limit))
    }

    async fn mark_dead(&self, silent: &[Silence], now: Instant) -> Result<u64> {
        let mut tables = self.shared.tables();
        let mut died = 0;
        for Silence { worker, heartbeat_at } in silent {
            let row = tables.workers.get_mut(worker).filter(|row| row.heartbeat_at == *heartbeat_at);
            if let Some(row) = row.filter(|row| row.dead_at.is_none()) {
                row.dead_at = Some(now);
                died += 1;
            }
        }
        tables.workers.retain(|_, row| row.dead_at.is_none_or(|dead_at| dead_at > now - DEAD_WORKER_TTL));
        Ok(died)
    }
}

impl Memory {
    /// The facts that a worker reported about itself in its heartbeats.
    pub fn worker_facts(&self, worker: WorkerId) -> Option<WorkerFacts> {
        self.shared.tables().workers.get(&worker)?.facts.clone()
    }

    /// The number of attempts that a worker has ended.
    pub fn tasks_done(&self, worker: WorkerId) -> Option<u64> {
        Some(self.shared.tables().workers.get(&worker)?.done)
    }
}

/// A worker that has sent a heartbeat.
pub(super) struct WorkerRow {
    facts: Option<WorkerFacts>,
    heartbeat_at: Instant,
    command: Option<WorkerCommand>,
    done: u64,
    dead_at: Option<Instant>,
}

impl WorkerRow {
    /// Whether it was declared dead.
    pub(super) fn is_dead(&self) -> bool {
        self.dead_at.is_some()
    }

    /// The queue that it serves, if it serves one.
    pub(super) fn queue(&self) -> Option<&str> {
        self.facts.as_ref()?.queue.as_deref()
    }
}

impl Tables {
    /// A worker that is known and not dead.
    fn living(&self, worker: WorkerId) -> Option<&WorkerRow> {
        self.workers.get(&worker).filter(|row| row.dead_at.is_none())
    }

    pub(super) fn silent(&self, since: Instant, limit: u32) -> Vec<Silence> {
        let living = self.workers.iter().filter(|(_, row)| row.dead_at.is_none());
        let all = living.map(|(worker, row)| Silence { worker: *worker, heartbeat_at: row.heartbeat_at });
        let mut silent: Vec<Silence> = all.filter(|silence| silence.heartbeat_at < since).collect();
        silent.sort_by_key(|silence| (silence.heartbeat_at, silence.worker));
        silent.truncate(limit as usize);
        silent
    }

    pub(super) fn lost(&self, silent: &[Silence], limit: u32) -> Vec<Claim> {
        let is_lost = |held: &Claim| {
            self.living(held.worker).is_none_or(|row| {
                silent.contains(&Silence { worker: held.worker, heartbeat_at: row.heartbeat_at })
            })
        };
        held(self).filter(is_lost).take(limit as usize).collect()
    }

    pub(super) fn most_silent(&self) -> Option<Instant> {
        let abandoned = held(self).any(|held| self.living(held.worker).is_none());
        if abandoned {
            Some(Instant::UNIX_EPOCH)
        } else {
            let living = self.workers.values().filter(|row| row.dead_at.is_none());
            living.map(|row| row.heartbeat_at).min()
        }
    }
}

/// Every attempt that a worker holds.
fn held(tables: &Tables) -> impl Iterator<Item = Claim> {
    let held = tables.tasks.iter().filter_map(|(key, task)| Some((*key, task.attempt, task.worker?)));
    held.map(|(key, attempt, worker)| Claim { key, attempt, worker })
}
