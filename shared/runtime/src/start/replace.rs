//! Starting a run in place of another one for the same logical date.

use engine::Command;

use crate::{Error, Result, Runtime, StartRun, Started};

impl Runtime {
    /// Starts a run. If another one has its logical date, that one is cancelled unless it has ended, and gives the date
    /// up; it can still be read.
    pub async fn start_in_place(&self, request: StartRun, actor: &str) -> Result<Started> {
        let other = match self.start(request.clone()).await {
            Err(Error::DateTaken(run)) => run,
            started => return started,
        };
        let reason = Some(format!("run {} takes its date", request.id));
        self.settle(other, Command::Cancel { actor: actor.to_owned(), reason }).await?;
        self.store.give_up_date(other).await?;
        self.start(request).await
    }
}
