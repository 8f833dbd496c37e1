//! Lanes: how many runs of one workflow and concurrency key go on at the same time.

use engine::{Command, Scene};
use language::template::{self, Scope};
use model::message::{CancelRequested, LaneFreed};
use model::{Message, Overlap, RunId, Workflow};
use serde_json::Value;
use store::{LaneMember, Unit};

use crate::{Error, Result, Runtime, StartRun};

/// So many runs begin in one transaction; the end of each lets the next begin.
const ADMITTED_AT_ONCE: usize = 100;

/// What becomes of a run that enters its lane.
#[derive(Default)]
pub(crate) struct Entry {
    /// Whether it must wait for its turn.
    pub(crate) held: bool,
    /// Asks for the end of the runs that it takes the place of.
    pub(crate) cancelled: Vec<Message>,
}

/// The rendered concurrency key of a run; none where its workflow has no limit.
pub(crate) fn key(workflow: &Workflow, scope: &Scope) -> Result<Option<String>> {
    let Some(concurrency) = &workflow.concurrency else { return Ok(None) };
    let Some(key) = &concurrency.key else { return Ok(Some(String::new())) };
    let rendered = template::render(&Value::String(key.clone()), scope)
        .map_err(|error| Error::BadKey(error.to_string()))?;
    Ok(Some(match rendered {
        Value::String(text) => text,
        other => other.to_string(),
    }))
}

/// Enters a run into its lane, whose lock is held from here on.
pub(crate) async fn enter(
    unit: &mut dyn Unit,
    request: &StartRun,
    workflow: &Workflow,
    lane: &str,
) -> Result<Entry> {
    let members = unit.lane(request.tenant, &workflow.name, lane).await?;
    let others: Vec<LaneMember> = members.into_iter().filter(|member| member.run != request.id).collect();
    let Some(concurrency) = &workflow.concurrency else { return Ok(Entry::default()) };
    let limit = concurrency.limit as usize;
    let active: Vec<RunId> = others.iter().filter(|member| !member.held).map(|member| member.run).collect();
    let full = active.len() >= limit;
    match concurrency.policy {
        Overlap::Skip => match active.last().filter(|_| full) {
            Some(run) => Err(Error::LaneTaken(*run)),
            None => Ok(Entry::default()),
        },
        // Whoever waits already goes first.
        Overlap::Queue => Ok(Entry { held: full || others.len() > active.len(), cancelled: Vec::new() }),
        Overlap::CancelPrevious => {
            let waiting = others.iter().filter(|member| member.held).map(|member| member.run);
            let oldest = active.iter().copied().take((active.len() + 1).saturating_sub(limit));
            let cancelled = oldest.chain(waiting).map(|run| cancel(run, request)).collect();
            Ok(Entry { held: full, cancelled })
        }
    }
}

fn cancel(run: RunId, request: &StartRun) -> Message {
    let reason = format!("run {} of the same concurrency key takes its place", request.id);
    Message::CancelRequested(CancelRequested { run, actor: request.by.clone(), reason })
}

impl Runtime {
    /// Lets runs begin that waited for their turn in a lane, as many as there is room for. Asking twice changes
    /// nothing.
    pub async fn admit(&self, freed: &LaneFreed) -> Result<()> {
        let mut unit = self.store.begin().await?;
        let members = unit.lane(freed.tenant, &freed.workflow, &freed.lane).await?;
        let mut active = members.iter().filter(|member| !member.held).count();
        let waiting = members.iter().filter(|member| member.held).map(|member| member.run);
        let held: Vec<RunId> = waiting.take(ADMITTED_AT_ONCE).collect();
        let runs = unit.lock(&held).await?;
        let graphs = self.graphs_of(&mut *unit, &runs).await?;
        let mut decisions = Vec::new();
        for id in held {
            let Some(run) = runs.iter().find(|run| run.id == id).cloned() else { continue };
            // The limit is the one of the version that the run keeps.
            let limit = graphs[&id].workflow().concurrency.as_ref().map_or(u32::MAX, |limits| limits.limit);
            if active >= limit as usize {
                break;
            }
            let mut scene = Scene::of(&graphs[&id], run, self.clock.now());
            unit.unfinished(&[id]).await?.into_iter().for_each(|(_, task)| scene.add(task));
            scene.decide(&Command::Admit);
            self.finish(&mut *unit, &mut scene, None).await?;
            decisions.extend(scene.close());
            active += 1;
        }
        self.conclude(unit, decisions).await
    }
}
