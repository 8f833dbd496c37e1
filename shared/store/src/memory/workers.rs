//! Workers: which are alive, what each of them holds, and their commands.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Instant, WorkerCommand, WorkerCommandKind, WorkerFacts, WorkerId};

use super::Memory;
use super::tables::Tables;
use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence, Workers, normal};

#[async_trait]
impl Workers for Memory {
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply> {
        let mut tables = self.shared.tables();
        let Heartbeat { worker, facts, at } = normal::sign(sign);
        // A clock that was turned back must not make a living worker look silent.
        let later = |row: &mut WorkerRow| {
            let after = row.heartbeat_at + TimeDelta::microseconds(1);
            row.heartbeat_at = if at < row.heartbeat_at { after } else { at };
        };
        let fresh = WorkerRow { facts: None, heartbeat_at: at, command: None };
        let row = tables.workers.entry(worker).and_modify(later).or_insert(fresh);
        row.facts = facts.or(row.facts.take());
        let command = row.command.clone();
        Ok(HeartbeatReply { holds: held(&tables).filter(|held| held.worker == worker).collect(), command })
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
        let stands = row.command.as_ref().map(|stands| stands.kind);
        if stands.is_none()
            || (stands == Some(WorkerCommandKind::Drain) && command.kind == WorkerCommandKind::Kill)
        {
            row.command = Some(normal::worker_command(command));
        }
        Ok(row.command.clone())
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        Ok(self.shared.tables().silent(since, limit))
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>> {
        Ok(self.shared.tables().lost(silent, limit))
    }

    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64> {
        let mut tables = self.shared.tables();
        let before = tables.workers.len();
        tables.workers.retain(|worker, row| {
            !silent.contains(&Silence { worker: *worker, heartbeat_at: row.heartbeat_at })
        });
        Ok((before - tables.workers.len()) as u64)
    }
}

impl Memory {
    /// What a worker reported about itself in its heartbeats.
    pub fn worker_facts(&self, worker: WorkerId) -> Option<WorkerFacts> {
        self.shared.tables().workers.get(&worker)?.facts.clone()
    }
}

/// A worker that has sent a heartbeat.
pub(super) struct WorkerRow {
    facts: Option<WorkerFacts>,
    heartbeat_at: Instant,
    command: Option<WorkerCommand>,
}

impl WorkerRow {
    /// The queue that it serves, if it serves one.
    pub(super) fn queue(&self) -> Option<&str> {
        self.facts.as_ref()?.queue.as_deref()
    }
}

impl Tables {
    pub(super) fn silent(&self, since: Instant, limit: u32) -> Vec<Silence> {
        let all = self
            .workers
            .iter()
            .map(|(worker, row)| Silence { worker: *worker, heartbeat_at: row.heartbeat_at });
        let mut silent: Vec<Silence> = all.filter(|silence| silence.heartbeat_at < since).collect();
        silent.sort_by_key(|silence| (silence.heartbeat_at, silence.worker));
        silent.truncate(limit as usize);
        silent
    }

    pub(super) fn lost(&self, silent: &[Silence], limit: u32) -> Vec<Claim> {
        let is_lost = |held: &Claim| {
            self.workers.get(&held.worker).is_none_or(|row| {
                silent.contains(&Silence { worker: held.worker, heartbeat_at: row.heartbeat_at })
            })
        };
        held(self).filter(is_lost).take(limit as usize).collect()
    }

    pub(super) fn most_silent(&self) -> Option<Instant> {
        let abandoned = held(self).any(|held| !self.workers.contains_key(&held.worker));
        if abandoned {
            Some(Instant::UNIX_EPOCH)
        } else {
            self.workers.values().map(|row| row.heartbeat_at).min()
        }
    }
}

/// Every attempt that a worker holds.
fn held(tables: &Tables) -> impl Iterator<Item = Claim> {
    let held = tables.tasks.iter().filter_map(|(key, task)| Some((*key, task.attempt, task.worker?)));
    held.map(|(key, attempt, worker)| Claim { key, attempt, worker })
}
