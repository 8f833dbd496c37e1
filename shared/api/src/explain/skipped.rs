//! Tasks that were skipped: by their own condition, by a switch, by their rule, or since others were.

use model::{EventKind, Task, TaskIndex, TaskState, TriggerRule};
use serde_json::{Value, json};

use super::{Explained, Story, words};

/// What a switch chose.
pub(super) struct Choice<'a> {
    next: &'a [String],
    default: bool,
    why: String,
}

impl Choice<'_> {
    /// What it took, and why.
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

impl Story<'_> {
    pub(super) fn skipped(&self, task: &Task) -> Explained {
        let as_child = || self.not_needed(task, task.child?);
        if let Some((because, details)) = self.own_reason(task.index).or_else(as_child) {
            return Explained::new(because, details);
        }
        let skipped: Vec<TaskIndex> = self.skipped_parents(task.index).collect();
        let were = if skipped.len() == 1 { "was" } else { "were" };
        let mut because = match skipped.as_slice() {
            [] => "Its dependencies ended in a way in which it is not needed.".to_owned(),
            skipped => format!("{}, which it depends on, {were} skipped.", self.names(skipped)),
        };
        let rule = words::rule(self.spec(task.index).trigger_rule);
        because.extend(rule.map(|rule| format!(" {rule}")));
        let root = self.where_skipping_began(task.index);
        if let Some((origin, (reason, _))) = &root {
            because += &format!(" The first was `{}`. {reason}", self.name(*origin));
        }
        let origin = root.map(|(origin, _)| self.name(origin));
        Explained::new(because, json!({"skipped": self.states(skipped), "began_with": origin}))
    }

    /// Why a task was skipped, where that lies in itself or in a switch and not in tasks that were skipped before it.
    fn own_reason(&self, task: TaskIndex) -> Option<(String, Value)> {
        let own = self.unmet_condition(task).or_else(|| self.gave_up(task));
        own.or_else(|| self.unmet_rule(task)).or_else(|| self.passed_over(task))
    }

    /// A sensor that gave up and may be skipped.
    fn gave_up(&self, task: TaskIndex) -> Option<(String, Value)> {
        let data = self.data(task, EventKind::TaskSkipped);
        let why = data["gave_up"].as_str()?;
        let because = format!("`{}` timed out, and it has `soft_fail`: {why}.", self.name(task));
        Some((because, data.clone()))
    }

    fn unmet_condition(&self, task: TaskIndex) -> Option<(String, Value)> {
        let data = self.data(task, EventKind::TaskSkipped);
        data["condition"].as_str()?;
        let because =
            format!("The condition of `{}` did not hold: {}.", self.name(task), words::condition(data));
        Some((because, data.clone()))
    }

    /// A task that waits for failures is not needed once there can be none.
    fn unmet_rule(&self, task: TaskIndex) -> Option<(String, Value)> {
        let rule = self.spec(task).trigger_rule;
        if !matches!(rule, TriggerRule::AllFailed | TriggerRule::OneFailed) {
            return None;
        }
        let well: Vec<TaskIndex> = self.parents(task).filter(|parent| self.ended_well(*parent)).collect();
        let because = format!("{} But {} did not fail.", words::rule(rule)?, self.names_and_states(&well));
        Some((because, json!({"trigger_rule": rule, "not_failed": self.states(well)})))
    }

    fn ended_well(&self, task: TaskIndex) -> bool {
        let state = self.state(task);
        state.is_final() && !matches!(state, TaskState::Failed | TaskState::UpstreamFailed)
    }

    fn passed_over(&self, task: TaskIndex) -> Option<(String, Value)> {
        let switches = self.parents(task).filter(|parent| self.graph.is_branch(*parent, task));
        let (switch, choice) = switches
            .filter_map(|switch| Some((switch, self.choice(switch)?)))
            .find(|(_, choice)| choice.next.iter().all(|name| *name != self.name(task)))?;
        let name = self.name(switch);
        let because =
            format!("The switch `{name}` did not choose `{}`: {}.", self.name(task), choice.describe());
        let why = self.data(switch, EventKind::TaskSucceeded);
        Some((because, json!({"switch": name, "took": choice.next, "why": why})))
    }

    /// Which branch a switch took, once it has.
    pub(super) fn choice(&self, switch: TaskIndex) -> Option<Choice<'_>> {
        if self.state(switch) != TaskState::Succeeded {
            return None;
        }
        let (data, cases) = (self.data(switch, EventKind::TaskSucceeded), &self.graph.spec(switch).cases);
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

    fn skipped_parents(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> {
        self.parents(task).filter(|parent| self.state(*parent) == TaskState::Skipped)
    }

    /// The task with which a chain of skipped ones began, and its reason.
    fn where_skipping_began(&self, task: TaskIndex) -> Option<(TaskIndex, (String, Value))> {
        let above = |task: &TaskIndex| self.skipped_parents(*task).next();
        let mut chain = std::iter::successors(above(&task), above);
        chain.find_map(|task| Some((task, self.own_reason(task)?)))
    }
}
