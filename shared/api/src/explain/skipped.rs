//! Tasks that were skipped: by their condition, a switch or their trigger rule, or because a parent was skipped.

use model::{EventKind, Task, TaskIndex, TaskState, TriggerRule};
use serde_json::{Value, json};

use super::{Explained, Story, fan_out, words};

/// The choice of a switch.
pub(super) struct Choice<'a> {
    next: &'a [String],
    default: bool,
    why: String,
}

impl Choice<'_> {
    /// The branch it took, and why.
    pub(super) fn describe(&self) -> String {
        let names = words::list(self.next.iter().map(|name| format!("`{name}`")));
        let took = match (self.next, self.default) {
            ([], _) => "no branch".to_owned(),
            (_, true) => format!("its default, {names}"),
            (_, false) => names,
        };
        format!("it took {took}, since {}", self.why)
    }
}

pub(super) fn skipped(story: &Story<'_>, task: &Task) -> Explained {
    let as_child = || fan_out::not_needed(story, task, task.child?);
    if let Some((because, details)) = own_reason(story, task.index).or_else(as_child) {
        return Explained::new(because, details);
    }
    let skipped: Vec<TaskIndex> = skipped_parents(story, task.index).collect();
    let were = if skipped.len() == 1 { "was" } else { "were" };
    let mut because = match skipped.as_slice() {
        [] => "Its dependencies ended in a way in which it is not needed.".to_owned(),
        skipped => format!("{}, which it depends on, {were} skipped.", story.names(skipped)),
    };
    let rule = words::rule(story.spec(task.index).trigger_rule);
    because.extend(rule.map(|rule| format!(" {rule}")));
    let root = where_skipping_began(story, task.index);
    if let Some((origin, (reason, _))) = &root {
        because += &format!(" The first was `{}`. {reason}", story.name(*origin));
    }
    let origin = root.map(|(origin, _)| story.name(origin));
    Explained::new(because, json!({"skipped": story.states(skipped), "began_with": origin}))
}

/// Why a task was skipped, if the reason is its own or a switch, and not a skipped parent.
fn own_reason(story: &Story<'_>, task: TaskIndex) -> Option<(String, Value)> {
    let own = unmet_condition(story, task).or_else(|| gave_up(story, task));
    own.or_else(|| unmet_rule(story, task)).or_else(|| passed_over(story, task))
}

/// A sensor that gave up and may be skipped.
fn gave_up(story: &Story<'_>, task: TaskIndex) -> Option<(String, Value)> {
    let data = story.data(task, EventKind::TaskSkipped);
    let why = data["gave_up"].as_str()?;
    let because = format!("`{}` timed out, and it has `soft_fail`: {why}.", story.name(task));
    Some((because, data.clone()))
}

fn unmet_condition(story: &Story<'_>, task: TaskIndex) -> Option<(String, Value)> {
    let data = story.data(task, EventKind::TaskSkipped);
    data["condition"].as_str()?;
    let because =
        format!("The condition of `{}` did not hold: {}.", story.name(task), words::condition(data));
    Some((because, data.clone()))
}

/// A task that waits for failures is not needed once there can be none.
fn unmet_rule(story: &Story<'_>, task: TaskIndex) -> Option<(String, Value)> {
    let rule = story.spec(task).trigger_rule;
    if !matches!(rule, TriggerRule::AllFailed | TriggerRule::OneFailed) {
        return None;
    }
    let well: Vec<TaskIndex> = story.parents(task).filter(|parent| ended_well(story, *parent)).collect();
    let because = format!("{} But {} did not fail.", words::rule(rule)?, story.names_and_states(&well));
    Some((because, json!({"trigger_rule": rule, "not_failed": story.states(well)})))
}

fn ended_well(story: &Story<'_>, task: TaskIndex) -> bool {
    let state = story.state(task);
    state.is_final() && !matches!(state, TaskState::Failed | TaskState::UpstreamFailed)
}

fn passed_over(story: &Story<'_>, task: TaskIndex) -> Option<(String, Value)> {
    let switches = story.parents(task).filter(|parent| story.graph.is_branch(*parent, task));
    let (switch, choice) = switches
        .filter_map(|switch| Some((switch, choice(story, switch)?)))
        .find(|(_, choice)| choice.next.iter().all(|name| *name != story.name(task)))?;
    let name = story.name(switch);
    let because =
        format!("The switch `{name}` did not choose `{}`: {}.", story.name(task), choice.describe());
    let why = story.data(switch, EventKind::TaskSucceeded);
    Some((because, json!({"switch": name, "took": choice.next, "why": why})))
}

/// Which branch a switch took, once it has.
pub(super) fn choice<'a>(story: &'a Story<'_>, switch: TaskIndex) -> Option<Choice<'a>> {
    if story.state(switch) != TaskState::Succeeded {
        return None;
    }
    let (data, cases) = (story.data(switch, EventKind::TaskSucceeded), &story.graph.spec(switch).cases);
    let condition = data.as_object()?.get("condition").and_then(Value::as_str);
    let taken = cases.iter().find(|case| case.when.as_deref() == condition);
    let next = taken.map_or(&[][..], |case| &case.next);
    let why = match condition {
        Some(_) => format!("{} held", words::condition(data)),
        None => {
            let tried = data["tried"].as_array().into_iter().flatten();
            format!("no condition held: {}", words::list(tried.map(words::condition)))
        }
    };
    Some(Choice { next, default: condition.is_none(), why })
}

fn skipped_parents(story: &Story<'_>, task: TaskIndex) -> impl Iterator<Item = TaskIndex> {
    story.parents(task).filter(|parent| story.state(*parent) == TaskState::Skipped)
}

/// The task with which a chain of skipped ones began, and its reason.
fn where_skipping_began(story: &Story<'_>, task: TaskIndex) -> Option<(TaskIndex, (String, Value))> {
    let above = |task: &TaskIndex| skipped_parents(story, *task).next();
    let mut chain = std::iter::successors(above(&task), above);
    chain.find_map(|task| Some((task, own_reason(story, task)?)))
}
