//! Concurrency groups: how many runs of one workflow and concurrency key are active at the same time.
//!
//! Creating a run locks its group. By the policy of the workflow, a run beyond the limit is created waiting (`queued`,
//! nothing evaluated), is not created, or is created waiting while the runs before it are asked to end. The end of a run
//! frees the group by message; evaluate locks the group and admits as many runs as there is room for, oldest first.

use std::collections::{BTreeMap, BTreeSet};

use engine::Command;
use language::template::{self, Scope};
use model::message::{CancelRequested, ConcurrencyGroupFreed};
use model::{BackfillId, Concurrency, Message, Overlap, Parent, Run, RunId, Schedule, Workflow};
use serde_json::Value;
use store::{ConcurrencyMember, Transaction};
use tracing::error;

use crate::pipeline;
use crate::pipeline::{Creation, Pipeline};
use crate::publish;
use crate::start::Prepared;
use crate::{Error, Origin, Result, Runtime};

/// The most runs that are admitted in one transaction; the end of each admits the next.
const MAX_ADMITTED: usize = 100;

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

/// The group that follows from a run's origin: its backfill's, or that of a schedule with a limit of its own.
pub(crate) fn of_origin(workflow: &Workflow, origin: &Origin) -> Option<String> {
    match origin {
        Origin::Backfill { id, .. } => Some(id.concurrency_group()),
        Origin::Schedule(planned) => {
            let own = Schedule::concurrency_group(&planned.schedule);
            Some(own).filter(|own| workflow.concurrency.is_none() && workflow.limit_of(own).is_some())
        }
        _ => None,
    }
}

/// Enters a run into its concurrency group, whose lock is held from here on: says whether it waits, and which runs it
/// replaces. The runs above it wait for it and so do not count.
pub(crate) async fn enter<'s>(
    unit: &mut dyn Transaction,
    prepared: &'s Prepared,
    group: &str,
) -> Result<Creation<'s>> {
    let (id, workflow) = (prepared.run.id, prepared.graph.workflow());
    let above = ancestors(unit, prepared.run.parent).await?;
    let members = unit.concurrency_group(prepared.run.tenant, &workflow.name, group).await?;
    let nested = members.iter().any(|member| above.contains(&member.run));
    let others: Vec<ConcurrencyMember> =
        members.into_iter().filter(|member| member.run != id && !above.contains(&member.run)).collect();
    let creation = Creation::of(prepared);
    let Some(concurrency) = workflow.limit_of(group) else { return Ok(creation) };
    let limit = concurrency.limit as usize;
    let active: Vec<RunId> =
        others.iter().filter(|member| !member.waiting).map(|member| member.run).collect();
    let full = active.len() >= limit;
    match concurrency.policy {
        Overlap::Skip => match active.last().filter(|_| full) {
            Some(run) => Err(Error::ConcurrencyGroupTaken(*run)),
            None => Ok(creation),
        },
        // Runs that wait already go first, except before one that another run waits for.
        Overlap::Queue => {
            let passed = !nested && others.len() > active.len();
            Ok(Creation { waiting: full || passed, ..creation })
        }
        Overlap::CancelPrevious => {
            let waiting = others.iter().filter(|member| member.waiting).map(|member| member.run);
            let oldest = active.iter().copied().take((active.len() + 1).saturating_sub(limit));
            let messages = oldest.chain(waiting).map(|run| cancel(run, id, &prepared.by)).collect();
            Ok(Creation { waiting: full, messages, ..creation })
        }
    }
}

/// The runs whose tasks wait for the run of this parent, directly or through others: what only waits uses up no limit.
async fn ancestors(unit: &mut dyn Transaction, parent: Option<Parent>) -> Result<BTreeSet<RunId>> {
    match parent.filter(|parent| parent.waits) {
        Some(parent) => Ok(unit.ancestors(parent.key.run).await?),
        None => Ok(BTreeSet::new()),
    }
}

fn cancel(run: RunId, successor: RunId, actor: &str) -> Message {
    let reason = format!("run {successor} of the same concurrency key takes its slot");
    Message::CancelRequested(CancelRequested { run, actor: actor.into(), reason })
}

impl Runtime {
    /// Admits runs that wait in a concurrency group, as many as there is room for. Doing it twice changes nothing.
    pub async fn admit(&self, freed: &ConcurrencyGroupFreed) -> Result<()> {
        admit_to(self, freed).await?;
        match BackfillId::of_concurrency_group(&freed.group) {
            Some(backfill) => self.backfills().advance(backfill).await,
            None => Ok(()),
        }
    }
}

/// Admits runs to a group that belongs to no backfill.
pub(crate) async fn admit_to(runtime: &Runtime, freed: &ConcurrencyGroupFreed) -> Result<()> {
    let group = RunId::from_key(freed.tenant, &freed.workflow, &freed.group);
    pipeline::despite_conflicts(runtime, group, || try_admit(runtime, freed)).await
}

async fn try_admit(runtime: &Runtime, freed: &ConcurrencyGroupFreed) -> Result<()> {
    let mut pipeline = Pipeline::open(runtime).await?;
    let members = pipeline.unit().concurrency_group(freed.tenant, &freed.workflow, &freed.group).await?;
    let running: BTreeSet<RunId> =
        members.iter().filter(|member| !member.waiting).map(|member| member.run).collect();
    let waiting = members.iter().filter(|member| member.waiting).map(|member| member.run);
    let waiting: Vec<RunId> = waiting.take(MAX_ADMITTED).collect();
    let mut locked: BTreeMap<RunId, Run> =
        pipeline.unit().lock(&waiting).await?.into_iter().map(|run| (run.id, run)).collect();
    let (mut admitted, mut cancellations) = (Vec::new(), Vec::new());
    // In the order in which they wait, which is not the order in which they are locked.
    for id in waiting {
        let Some(run) = locked.remove(&id) else { continue };
        let graph = match pipeline.graph_of(&run).await {
            Ok(graph) => graph,
            Err(error @ Error::Unusable { .. }) => {
                // It must not keep those behind it waiting.
                error!("Run {id} cannot be admitted: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        let above = ancestors(pipeline.unit(), run.parent).await?;
        let active = running.difference(&above).count() + admitted.len();
        // The limit is the one of the version that the run keeps.
        let limits = graph.workflow().limit_of(&freed.group);
        if active >= limits.as_ref().map_or(u32::MAX, |limits| limits.limit) as usize {
            // One behind it may be admitted all the same, if the active runs wait for it.
            cancellations.extend(cancel_again(limits, id, &members, &above));
        } else if run.waiting && !run.state.is_final() {
            admitted.push(run);
        }
    }
    let commands: Vec<_> = admitted.iter().map(|run| (run.id, Command::Admit)).collect();
    let mut written = pipeline.settle(admitted, &commands, Vec::new()).await?;
    written.pending.messages.extend(cancellations);
    publish::publish(runtime, written.pending).await;
    Ok(())
}

/// Requests again the end of the runs that a run replaces: the first request may have got lost.
fn cancel_again(
    limits: Option<Concurrency>,
    waiting: RunId,
    members: &[ConcurrencyMember],
    above: &BTreeSet<RunId>,
) -> Vec<Message> {
    let Some(Concurrency { policy: Overlap::CancelPrevious, limit, .. }) = limits else { return Vec::new() };
    let active = |member: &&ConcurrencyMember| !member.waiting && !above.contains(&member.run);
    let many = members.iter().filter(active).count();
    // A later run replaces this one, and not the other way round.
    let earlier = members.iter().take_while(|member| member.run != waiting).filter(active);
    let oldest = earlier.take((many + 1).saturating_sub(limit as usize));
    oldest.map(|member| cancel(member.run, waiting, "concurrency")).collect()
}
