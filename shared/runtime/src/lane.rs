//! Lanes: how many runs of one workflow and concurrency key go on at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Command, Graph, RunSlice};
use language::template::{self, Scope};
use model::message::{CancelRequested, LaneFreed};
use model::{BackfillId, Concurrency, Message, Overlap, Parent, Run, RunId, Schedule, Workflow};
use serde_json::Value;
use store::{LaneMember, Transaction};
use tracing::error;

use crate::start::Start;
use crate::{Error, Planning, Result, Runtime};

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

/// The lane of a run that nobody asked for by itself: its backfill's, or that of a schedule with a limit of its own.
pub(crate) fn of_planned(workflow: &Workflow, planning: &Planning) -> Option<String> {
    let own = Schedule::lane(&planning.planned.schedule);
    match planning.backfill {
        Some(backfill) => Some(backfill.lane()),
        None => Some(own).filter(|own| workflow.concurrency.is_none() && workflow.limit_of(own).is_some()),
    }
}

/// Enters a run into its lane, whose lock is held from here on. The runs above it wait for it and so do not count.
pub(crate) async fn enter(unit: &mut dyn Transaction, start: &Start, lane: &str) -> Result<Entry> {
    let (id, workflow) = (start.new_run.id, start.graph.workflow());
    let above = ancestors(unit, start.new_run.parent).await?;
    let members = unit.lane(start.new_run.tenant, &workflow.name, lane).await?;
    let nested = members.iter().any(|member| above.contains(&member.run));
    let others: Vec<LaneMember> =
        members.into_iter().filter(|member| member.run != id && !above.contains(&member.run)).collect();
    let Some(concurrency) = workflow.limit_of(lane) else { return Ok(Entry::default()) };
    let limit = concurrency.limit as usize;
    let active: Vec<RunId> = others.iter().filter(|member| !member.held).map(|member| member.run).collect();
    let full = active.len() >= limit;
    match concurrency.policy {
        Overlap::Skip => match active.last().filter(|_| full) {
            Some(run) => Err(Error::LaneTaken(*run)),
            None => Ok(Entry::default()),
        },
        // Whoever waits already goes first, but for one that is waited for.
        Overlap::Queue => {
            let passed = !nested && others.len() > active.len();
            Ok(Entry { held: full || passed, cancelled: Vec::new() })
        }
        Overlap::CancelPrevious => {
            let waiting = others.iter().filter(|member| member.held).map(|member| member.run);
            let oldest = active.iter().copied().take((active.len() + 1).saturating_sub(limit));
            let cancelled = oldest.chain(waiting).map(|run| cancel(run, id, &start.by)).collect();
            Ok(Entry { held: full, cancelled })
        }
    }
}

/// The runs whose tasks wait for the run of this parent, directly or through others: what only waits holds no place of
/// any limit.
async fn ancestors(unit: &mut dyn Transaction, parent: Option<Parent>) -> Result<BTreeSet<RunId>> {
    match parent.filter(|parent| parent.waits) {
        Some(parent) => Ok(unit.ancestors(parent.key.run).await?),
        None => Ok(BTreeSet::new()),
    }
}

fn cancel(run: RunId, successor: RunId, actor: &str) -> Message {
    let reason = format!("run {successor} of the same concurrency key takes its place");
    Message::CancelRequested(CancelRequested { run, actor: actor.into(), reason })
}

impl Runtime {
    /// Lets runs begin that waited for their turn in a lane, as many as there is room for. Asking twice changes
    /// nothing.
    pub async fn admit(&self, freed: &LaneFreed) -> Result<()> {
        self.admit_to(freed).await?;
        match BackfillId::of_lane(&freed.lane) {
            Some(backfill) => self.advance_backfill(backfill).await,
            None => Ok(()),
        }
    }

    /// The same, where nothing follows the lane.
    pub(crate) async fn admit_to(&self, freed: &LaneFreed) -> Result<()> {
        let lane = RunId::from_key(freed.tenant, &freed.workflow, &freed.lane);
        self.despite_conflicts(lane, || self.try_admit(freed)).await
    }

    async fn try_admit(&self, freed: &LaneFreed) -> Result<()> {
        let mut unit = self.store.begin().await?;
        let members = unit.lane(freed.tenant, &freed.workflow, &freed.lane).await?;
        let running: BTreeSet<RunId> =
            members.iter().filter(|member| !member.held).map(|member| member.run).collect();
        let mut admitted: Vec<(Run, Arc<Graph>)> = Vec::new();
        let waiting = members.iter().filter(|member| member.held).map(|member| member.run);
        let held: Vec<RunId> = waiting.take(ADMITTED_AT_ONCE).collect();
        let runs = unit.lock(&held).await?;
        let mut repeated = Vec::new();
        for id in held {
            let Some(run) = runs.iter().find(|run| run.id == id).cloned() else { continue };
            let graph = match self.graphs_of(&mut *unit, std::slice::from_ref(&run)).await {
                Ok(mut graphs) => graphs.remove(&id).expect("it was asked for"),
                Err(error @ Error::Unusable { .. }) => {
                    // It must not keep those behind it waiting.
                    error!("Run {id} cannot be admitted: {error}");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let above = ancestors(&mut *unit, run.parent).await?;
            let active = running.difference(&above).count() + admitted.len();
            // The limit is the one of the version that the run keeps.
            let limit = graph.workflow().limit_of(&freed.lane).map_or(u32::MAX, |limits| limits.limit);
            if active >= limit as usize {
                // One behind it may have its turn all the same, if those who go on wait for it.
                repeated.extend(self.cancel_again(
                    graph.workflow().limit_of(&freed.lane),
                    id,
                    &members,
                    &above,
                ));
                continue;
            }
            if run.held && !run.state.is_final() {
                admitted.push((run, graph));
            }
        }
        let mut slices = Vec::new();
        for (run, graph) in &admitted {
            let mut slice = RunSlice::of(graph, run.clone(), self.clock.now());
            unit.unfinished(&[run.id]).await?.into_iter().for_each(|(_, task)| slice.add(task));
            slice.decide(&Command::Admit);
            self.finish(&mut *unit, &mut slice, None).await?;
            slices.push(slice);
        }
        let seated = self.seat(&mut *unit, slices.iter_mut().collect()).await?;
        let decisions = slices.into_iter().filter_map(RunSlice::close).collect();
        let mut unsaid = self.conclude(unit, decisions, seated).await?;
        unsaid.announcements.extend(repeated);
        self.publish(unsaid).await;
        Ok(())
    }

    /// Asks again for the end of the runs whose place a run shall take: they may not have heard.
    fn cancel_again(
        &self,
        limits: Option<Concurrency>,
        waiting: RunId,
        members: &[LaneMember],
        above: &BTreeSet<RunId>,
    ) -> Vec<Message> {
        match limits {
            Some(Concurrency { policy: Overlap::CancelPrevious, limit, .. }) => {
                let active = |member: &&LaneMember| !member.held && !above.contains(&member.run);
                let many = members.iter().filter(active).count();
                // Whoever came later takes the place of this one, and not the other way round.
                let earlier = members.iter().take_while(|member| member.run != waiting).filter(active);
                let oldest = earlier.take((many + 1).saturating_sub(limit as usize));
                oldest.map(|member| cancel(member.run, waiting, "concurrency")).collect()
            }
            _ => Vec::new(),
        }
    }
}
