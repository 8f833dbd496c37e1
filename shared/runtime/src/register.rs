//! Registering definitions.

use language::{Definition, Diagnostic, Schema, SourceFile};
use model::{Queues, TenantId, Workflow};
use serde_json::Value;
use store::{Activated, NewVersion, Registered};

use crate::{Result, Runtime};

/// Compiles files that belong together, for an installation that has these queues, or returns everything that is wrong with
/// them. If `stop` returns true meanwhile, the result is incomplete.
pub fn compile(
    queues: &Queues,
    files: &[SourceFile],
    stop: &dyn Fn() -> bool,
) -> std::result::Result<Vec<Definition>, Vec<Diagnostic>> {
    let compiled = language::compile_for(queues, files, stop);
    match compiled.diagnostics.is_empty() {
        true => Ok(compiled.definitions),
        false => Err(compiled.diagnostics),
    }
}

/// The JSON Schemas of the files that can be registered, by name.
pub fn schemas() -> impl Iterator<Item = (&'static str, Value)> {
    Schema::ALL.into_iter().map(|schema| (schema.name(), schema.to_json()))
}

/// Registers, activates and archives definitions of workflows.
#[derive(Clone, Copy)]
pub struct Definitions<'r> {
    runtime: &'r Runtime,
}

impl Runtime {
    /// Definitions: the versions of workflows, and which is active.
    pub fn definitions(&self) -> Definitions<'_> {
        Definitions { runtime: self }
    }
}

impl Definitions<'_> {
    /// Registers valid definitions, all of them or none; unchanged ones keep the version they have.
    pub async fn register(
        self,
        tenant: TenantId,
        definitions: Vec<Definition>,
        by: &str,
    ) -> Result<Vec<Registered>> {
        let at = self.runtime.clock.now();
        let new = definitions.into_iter().map(|Definition { workflow, source, hash }| {
            let by = by.to_owned();
            NewVersion { tenant, workflow, source, hash, by, at }
        });
        let new: Vec<NewVersion> = new.collect();
        let registered = self.runtime.store.register_all(&new).await?;
        let polls = |workflow: &Workflow| workflow.triggers.iter().any(|trigger| trigger.kind() == "sensor");
        let begins = |workflow: &Workflow| !workflow.schedules.is_empty() || polls(workflow);
        if new.iter().zip(&registered).any(|(new, done)| done.changed && begins(&new.workflow)) {
            // Schedules and sensors need not wait for the next tick.
            self.runtime.wake_sweep(at).await;
        }
        Ok(registered)
    }

    /// Makes a version that exists the active one. An archived workflow becomes active again.
    pub async fn activate(self, tenant: TenantId, workflow: &str, number: i32) -> Result<Activated> {
        let now = self.runtime.clock.now();
        let activated = self.runtime.store.activate(tenant, workflow, number, now).await?;
        if activated == Activated::Changed {
            self.runtime.wake_sweep(now).await;
        }
        Ok(activated)
    }

    /// Archives a workflow: it starts no more runs, and its history stays. Returns whether it was in use.
    pub async fn archive(self, tenant: TenantId, workflow: &str) -> Result<bool> {
        Ok(self.runtime.store.archive(tenant, workflow, self.runtime.clock.now()).await?)
    }
}
