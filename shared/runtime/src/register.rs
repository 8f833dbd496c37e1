//! Registering definitions.

use language::{Definition, Diagnostic, Schema, SourceFile};
use model::{TenantId, Workflow};
use serde_json::Value;
use store::{Activated, NewVersion, Registered};

use crate::{Result, Runtime};

/// Compiles files that belong together, or returns everything that is wrong with them. If `stop` returns true meanwhile, the
/// result is incomplete.
pub fn compile(
    files: &[SourceFile],
    stop: &dyn Fn() -> bool,
) -> std::result::Result<Vec<Definition>, Vec<Diagnostic>> {
    let compiled = language::compile_unless(files, stop);
    match compiled.diagnostics.is_empty() {
        true => Ok(compiled.definitions),
        false => Err(compiled.diagnostics),
    }
}

/// The JSON Schemas of the files that can be registered, by name.
pub fn schemas() -> impl Iterator<Item = (&'static str, Value)> {
    Schema::ALL.into_iter().map(|schema| (schema.name(), schema.to_json()))
}

impl Runtime {
    /// Registers sound definitions, all of them or none; unchanged ones keep the version they have.
    pub async fn register(
        &self,
        tenant: TenantId,
        definitions: Vec<Definition>,
        by: &str,
    ) -> Result<Vec<Registered>> {
        let at = self.clock.now();
        let new = definitions.into_iter().map(|Definition { workflow, source, hash }| {
            let by = by.to_owned();
            NewVersion { tenant, workflow, source, hash, by, at }
        });
        let new: Vec<NewVersion> = new.collect();
        let registered = self.store.register_all(&new).await?;
        let looks = |workflow: &Workflow| workflow.triggers.iter().any(|trigger| trigger.kind() == "sensor");
        let begins = |workflow: &Workflow| !workflow.schedules.is_empty() || looks(workflow);
        if new.iter().zip(&registered).any(|(new, done)| done.changed && begins(&new.workflow)) {
            // What it is to do by itself need not wait for the next tick.
            self.wake_sweep(at).await;
        }
        Ok(registered)
    }

    /// Makes a version that exists the active one. An archived workflow becomes active again.
    pub async fn activate_version(&self, tenant: TenantId, workflow: &str, number: i32) -> Result<Activated> {
        let now = self.clock.now();
        let activated = self.store.activate(tenant, workflow, number, now).await?;
        if activated == Activated::Changed {
            self.wake_sweep(now).await;
        }
        Ok(activated)
    }

    /// Archives a workflow: it starts no more runs, and its history stays. Returns whether it was in use.
    pub async fn archive_workflow(&self, tenant: TenantId, workflow: &str) -> Result<bool> {
        Ok(self.store.archive(tenant, workflow, self.clock.now()).await?)
    }
}
