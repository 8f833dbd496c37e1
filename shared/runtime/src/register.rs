//! Registering definitions.

use language::Definition;
use model::{TenantId, Workflow};
use store::{NewVersion, Registered};

use crate::{Result, Runtime};

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
}
