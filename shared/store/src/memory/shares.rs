//! Links between runs: tasks that several of them share, and concurrency groups.

use std::collections::BTreeMap;

use model::{Changes, Instant, Run, TaskKey, TenantId};
use serde_json::Value;

use super::constraints::holds;
use super::draft::Draft;
use super::tables::Tables;
use crate::{ConcurrencyMember, Result, Share, ShareAsk, normal};

/// The key of a shared task: tenant, name and rendered key.
pub(super) type ShareKey = (TenantId, String, String);

/// A shared task: which run executes it, or did.
#[derive(Clone, Copy)]
pub(super) struct ShareRow {
    pub(super) owner: TaskKey,
    /// None while it is under way; set once it succeeded.
    finished_at: Option<Instant>,
}

/// A task's wait for a shared one: the task that owns it, and the attempt that waits.
pub(super) type Waiter = (TaskKey, u32);

impl Draft {
    pub(super) fn share(&mut self, tables: &Tables, ask: &ShareAsk) -> Result<Share> {
        let (name, key) = (normal::label(&ask.name).into_owned(), normal::label(&ask.key).into_owned());
        holds(!name.is_empty(), "a_shared_task_has_a_name")?;
        let key = (ask.tenant, name, key);
        let existing = self.shares.get(&key).copied().unwrap_or_else(|| tables.shares.get(&key).copied());
        let serves = |row: &ShareRow| row.finished_at.is_none_or(|at| at >= ask.fresh_since);
        let row = existing.filter(serves).unwrap_or(ShareRow { owner: ask.by, finished_at: None });
        self.shares.insert(key, Some(row));
        self.waiters.insert(ask.by, None);
        if row.finished_at.is_some() {
            return Ok(Share::Reuse(row.owner, self.output(tables, row.owner)));
        }
        if row.owner == ask.by {
            return Ok(Share::Own);
        }
        self.waiters.insert(ask.by, Some((row.owner, ask.attempt)));
        Ok(Share::Wait(row.owner))
    }

    /// A task's output as the transaction sees it; null for none.
    pub(super) fn output(&self, tables: &Tables, key: TaskKey) -> Value {
        let stored = || tables.outputs.get(&key).filter(|_| !self.withdrawn.contains(&key));
        let found = self.outputs.get(&key).or_else(stored);
        found.cloned().unwrap_or_default()
    }

    /// Keeps the shared tasks that succeeded, and deletes those that failed or no longer count, and the waits that are over.
    pub(super) fn end_shares(&mut self, tables: &Tables, changes: &Changes) {
        let run = changes.run.id;
        for (task, finished_at) in normal::shares_ended(changes) {
            let ended = ShareRow { owner: TaskKey { run, task }, finished_at };
            for key in self.executed(tables, ended.owner, finished_at.is_none()) {
                self.shares.insert(key, finished_at.map(|_| ended));
            }
        }
        self.waiters
            .extend(normal::waits_over(changes).into_iter().map(|task| (TaskKey { run, task }, None)));
    }

    /// The shared tasks that a task executes, or all that it ever executed, as the transaction sees them.
    fn executed(&self, tables: &Tables, owner: TaskKey, ever: bool) -> Vec<ShareKey> {
        let committed = tables.shares.iter().map(|(key, row)| (key, Some(row)));
        let written = self.shares.iter().map(|(key, row)| (key, row.as_ref()));
        let rows: BTreeMap<&ShareKey, Option<&ShareRow>> = committed.chain(written).collect();
        let own = |row: &ShareRow| row.owner == owner && (ever || row.finished_at.is_none());
        rows.into_iter().filter(|(_, row)| row.is_some_and(own)).map(|(key, _)| key.clone()).collect()
    }

    /// The unfinished runs of a concurrency group as the transaction sees them, oldest first.
    pub(super) fn concurrency_group(
        &self,
        tables: &Tables,
        tenant: TenantId,
        workflow: &str,
        group: &str,
    ) -> Vec<ConcurrencyMember> {
        let group = normal::label(group);
        let member = |run: &&Run| {
            run.tenant == tenant
                && run.workflow == workflow
                && run.concurrency_group.as_deref() == Some(&*group)
                && run.finished_at.is_none()
        };
        let ids = tables.runs.keys().chain(self.written_runs());
        let rows: BTreeMap<_, _> = ids
            .filter_map(|id| self.run(tables, *id))
            .filter(member)
            .map(|run| ((run.created_at, run.id), run.waiting))
            .collect();
        rows.into_iter().map(|((_, run), waiting)| ConcurrencyMember { run, waiting }).collect()
    }
}
