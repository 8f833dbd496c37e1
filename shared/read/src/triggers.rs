//! Triggers and the events that they received.

use auth::{Denied, Permission};
use model::TriggerKey;
use store::{MAX_PAGE_BYTES, TriggerEvent, TriggerFilter, TriggerRecord, select};

use crate::{Listing, Reader, Result};

/// The triggers that a caller may read.
#[derive(Clone, Copy, Debug)]
pub struct Triggers<'a> {
    pub(crate) reader: &'a Reader,
}

impl Triggers<'_> {
    /// One trigger with its last events, the latest first.
    pub async fn get(
        &self,
        workflow: &str,
        name: &str,
        events: u32,
    ) -> Result<(TriggerRecord, Vec<TriggerEvent>)> {
        self.reader.check_workflow(Permission::Read, workflow)?;
        let key =
            TriggerKey { tenant: self.reader.tenant(), workflow: workflow.to_owned(), name: name.to_owned() };
        let mut connection = self.reader.connection().await?;
        let missing = || Denied::NotFound(format!("trigger `{name}` of workflow `{workflow}`"));
        let record = select::trigger(&mut *connection, &key).await?.ok_or_else(missing)?;
        let events = select::trigger_events(&mut *connection, &key, events).await?;
        Ok((record, events))
    }

    /// The triggers that the caller may read, by workflow and name, after the given one.
    pub async fn list(
        &self,
        workflow: Option<String>,
        after: Option<(String, String)>,
        limit: u32,
    ) -> Result<Listing<TriggerRecord, (String, String)>> {
        self.reader.caller.check_some(Permission::Read)?;
        let filter = TriggerFilter { workflow, after, limit: limit.saturating_add(1) };
        let mut connection = self.reader.connection().await?;
        let found = select::triggers(&mut *connection, self.reader.tenant(), &filter, MAX_PAGE_BYTES).await?;
        let position = |record: &TriggerRecord| (record.key.workflow.clone(), record.key.name.clone());
        let page = Listing::bounded(found, limit, position);
        Ok(page.only(|record| self.reader.may(Permission::Read, &record.key.workflow)))
    }
}
