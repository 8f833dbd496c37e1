//! Starting a run in place of another one for the same logical date.

use engine::Command;

use crate::{Error, Result, Runtime, StartRun, Started};

/// Which runs a new one may replace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replaces {
    /// Any run of the workflow.
    Any,
    /// Runs that the same caller started over the API.
    Own,
}

impl Runtime {
    /// Starts a run. If another one has its logical date, that one is cancelled unless it has ended, and gives the date
    /// up; it can still be read. A run that may not be replaced keeps the date.
    pub async fn start_in_place(&self, request: StartRun, actor: &str, which: Replaces) -> Result<Started> {
        let other = match self.start(request.clone()).await {
            Err(Error::DateTaken(run)) => run,
            started => return started,
        };
        if which == Replaces::Own {
            let found = self.store.run(request.tenant, other).await?;
            let origin = &request.origin;
            let is_own = found.is_some_and(|record| {
                record.facts.trigger_kind == origin.trigger_kind() && record.facts.trigger_by == origin.by()
            });
            if !is_own {
                return Err(Error::DateTaken(other));
            }
        }
        let reason = Some(format!("run {} takes its date", request.id));
        self.settle(other, Command::Cancel { actor: actor.to_owned(), reason }).await?;
        self.store.give_up_date(other).await?;
        self.start(request).await
    }
}
