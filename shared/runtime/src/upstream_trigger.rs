//! Runs that start once runs of other workflows have ended for the same logical date.

use model::message::RunFinished;
use model::{CloudEvent, Completion, Instant, TenantId, TriggerOn};
use serde_json::{Map, json};
use store::{RunRecord, TriggerEvent, TriggerRecord};
use tracing::{debug, warn};

use crate::activate::MAX_DEPTH;
use crate::start::trigger::{Begun, Cause};
use crate::{Error, Result, Triggers};

impl Triggers<'_> {
    /// Starts the runs that wait for the end of this one. Each waits for all its workflows to have run for the same
    /// logical date; the handler of the last one finds the others, and one run begins.
    pub async fn follow(self, finished: &RunFinished) -> Result<()> {
        let waiting = self.runtime.store.triggers_on(finished.tenant, "workflow", &finished.workflow).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        let Some(run) = self.runtime.store.run(finished.tenant, finished.run).await? else { return Ok(()) };
        let mut complaints = Vec::new();
        for record in waiting {
            match self.follow_one(&record, finished, &run).await {
                Ok(()) => {}
                // An event that one trigger cannot use must still reach the others.
                Err(Error::BadTrigger(complaint)) => complaints.push(complaint),
                Err(error) => return Err(error),
            }
        }
        if complaints.is_empty() { Ok(()) } else { Err(Error::BadTrigger(complaints.join("; "))) }
    }

    async fn follow_one(self, record: &TriggerRecord, finished: &RunFinished, run: &RunRecord) -> Result<()> {
        let TriggerOn::Workflows { workflows, state } = &record.trigger.on else { return Ok(()) };
        let (key, date) = (&record.key, run.facts.logical_date);
        if !state.is_met_by(finished.state) {
            return Ok(());
        }
        if run.run.depth >= MAX_DEPTH {
            warn!(
                "Runs start runs at most {MAX_DEPTH} deep: `{}` of `{}` starts none",
                key.name, key.workflow
            );
            return Ok(());
        }
        let mut runs = Map::new();
        runs.insert(finished.workflow.clone(), json!({"id": finished.run, "state": finished.state}));
        let others: Vec<&String> = workflows.iter().filter(|name| **name != finished.workflow).collect();
        match date {
            Some(date) => {
                let found = self.ended_on(finished.tenant, &others, date, *state).await?;
                let Some(found) = found else { return Ok(()) };
                runs.extend(found);
            }
            None if others.is_empty() => {}
            None => {
                debug!(
                    "Run {} has no logical date, so no trigger can match it with other runs",
                    finished.run
                );
                return Ok(());
            }
        }
        let event = CloudEvent {
            id: date.map_or_else(|| finished.run.to_string(), |date| date.to_rfc3339()),
            source: format!("/ebbflow/workflows/{}", workflows.join("+")),
            kind: "dev.ebbflow.run.finished.v1".into(),
            subject: Some(finished.run.to_string()),
            time: Some(finished.finished_at),
            data: json!({"workflow": finished.workflow, "logical_date": date, "runs": runs}),
            ..CloudEvent::default()
        };
        match self.passes(record, &event) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(reason) => return complain(record, &reason),
        }
        let note = TriggerEvent::new(
            &event.identity(),
            format!("{} {}", event.source, event.id),
            self.runtime.clock.now(),
        );
        let cause = Cause::received(key, vec![note]);
        match self.begin(record, &event, date, run.run.depth + 1, &cause).await {
            Ok(Begun::Broken(reason)) => complain(record, &reason),
            Ok(Begun::Started(_) | Begun::Before | Begun::Unwanted(_)) => Ok(()),
            Err(error) if error.is_quota() => complain(record, &error.to_string()),
            Err(error) => Err(error),
        }
    }

    /// The runs of these workflows for a logical date, if all of them have ended as wanted.
    async fn ended_on(
        self,
        tenant: TenantId,
        workflows: &[&String],
        date: Instant,
        wanted: Completion,
    ) -> Result<Option<Map<String, serde_json::Value>>> {
        let mut runs = Map::new();
        for workflow in workflows {
            match self.runtime.store.run_on(tenant, workflow, date).await? {
                Some((run, state)) if wanted.is_met_by(state) => {
                    runs.insert((*workflow).clone(), json!({"id": run, "state": state}));
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(runs))
    }
}

/// Why a trigger cannot use the end of a run.
fn complain(record: &TriggerRecord, reason: &str) -> Result<()> {
    let (name, workflow) = (&record.key.name, &record.key.workflow);
    Err(Error::BadTrigger(format!("trigger `{name}` of `{workflow}`: {reason}")))
}
