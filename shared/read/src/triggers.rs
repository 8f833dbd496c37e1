//! Triggers and the events that they received.

use auth::{Denied, Permission};
use model::TriggerKey;
use store::{MAX_PAGE_BYTES, TriggerEvent, TriggerFilter, TriggerRecord, select};

use crate::{Listing, Reader, Result};

impl Reader {
    /// One trigger with its last events, the latest first.
    pub async fn trigger(
        &self,
        workflow: &str,
        name: &str,
        events: u32,
    ) -> Result<(TriggerRecord, Vec<TriggerEvent>)> {
        self.check_workflow(Permission::Read, workflow)?;
        let key = TriggerKey { tenant: self.tenant(), workflow: workflow.to_owned(), name: name.to_owned() };
        let mut connection = self.connection().await?;
        let missing = || Denied::NotFound(format!("trigger `{name}` of workflow `{workflow}`"));
        let record = select::trigger(&mut *connection, &key).await?.ok_or_else(missing)?;
        let events = select::trigger_events(&mut *connection, &key, events).await?;
        Ok((record, events))
    }

    /// The triggers that the caller may read, by workflow and name, after the given one.
    pub async fn triggers(
        &self,
        workflow: Option<String>,
        after: Option<(String, String)>,
        limit: u32,
    ) -> Result<Listing<TriggerRecord, (String, String)>> {
        self.caller.check_some(Permission::Read)?;
        let filter = TriggerFilter { workflow, after, limit: limit.saturating_add(1) };
        let mut connection = self.connection().await?;
        let found = select::triggers(&mut *connection, self.tenant(), &filter, MAX_PAGE_BYTES).await?;
        let place = |record: &TriggerRecord| (record.key.workflow.clone(), record.key.name.clone());
        let page = Listing::bounded(found, limit, place);
        Ok(page.only(|record| self.may(Permission::Read, &record.key.workflow)))
    }
}
