//! Who waits for whom: references that exist, no circles, and what is upstream of a task.

use std::collections::BTreeMap;

use engine::{Cycle, Graph};
use model::{TaskIndex, Workflow};

use crate::diagnostic::Report;
use crate::suggest;
use crate::task::TaskParts;

/// More circles than this are not looked for.
const MAX_CIRCLES: usize = 10;

/// Which tasks there are and which of them a task can see the outputs of.
pub(crate) struct Upstream {
    graph: Graph,
    positions: BTreeMap<String, usize>,
}

impl Upstream {
    /// Whether there is a task of that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// Whether `task` waits for the one called `name`, directly or through others.
    pub(crate) fn reaches(&self, task: usize, name: &str) -> bool {
        let Some(wanted) = self.positions.get(name).map(|position| TaskIndex(*position as u32)) else {
            return false;
        };
        let task = TaskIndex(task as u32);
        self.graph.parents(task).contains(&wanted) || self.graph.ancestors(task).contains(&wanted)
    }

    /// The names of all tasks that `task` waits for.
    pub(crate) fn of(&self, task: usize) -> Vec<&str> {
        let ancestors = self.graph.ancestors(TaskIndex(task as u32));
        ancestors.into_iter().map(|index| self.graph.spec(index).name.as_str()).collect()
    }

    /// The name of a task.
    pub(crate) fn name(&self, task: usize) -> &str {
        &self.graph.spec(TaskIndex(task as u32)).name
    }
}

/// Reports what is wrong with `depends_on`, and tells what is upstream of what by the rest.
pub(crate) fn check(tasks: &[TaskParts<'_>], workflow: &Workflow, report: &mut Report<'_>) -> Upstream {
    let names = workflow.tasks.iter().zip(0..);
    let positions: BTreeMap<String, usize> = names.map(|(task, index)| (task.name.clone(), index)).collect();
    tasks.iter().for_each(|task| check_references(task, &positions, report));

    let mut sketch = workflow.clone();
    for task in &mut sketch.tasks {
        let own = task.name.clone();
        task.depends_on.retain(|name| *name != own);
    }
    let mut circles = 0;
    loop {
        match Graph::compile(sketch.clone()) {
            Ok(graph) => return Upstream { graph, positions },
            Err(cycle) => {
                if circles < MAX_CIRCLES {
                    report_circle(tasks, &cycle, report);
                }
                circles += 1;
                cut(&mut sketch, &cycle, circles >= MAX_CIRCLES);
            }
        }
    }
}

fn check_references(task: &TaskParts<'_>, positions: &BTreeMap<String, usize>, report: &mut Report<'_>) {
    for (place, word) in task.depends_on.iter().enumerate() {
        if task.name.is_some_and(|name| name.text == word.text) {
            let hint = Some("remove it from its own `depends_on`".to_owned());
            report.add(word.at, format!("the task `{}` cannot wait for itself", word.text), hint);
        } else if !positions.contains_key(word.text) {
            let own = task.name.map_or("", |name| name.text);
            let others = positions.keys().map(String::as_str).filter(|name| *name != own && !name.is_empty());
            let hint = suggest::hint(word.text, others);
            report.add(word.at, format!("there is no task `{}` in this workflow", word.text), hint);
        } else if task.depends_on[..place].iter().any(|earlier| earlier.text == word.text) {
            report.add(
                word.at,
                format!("`{}` stands twice in this list", word.text),
                Some("remove one".to_owned()),
            );
        }
    }
}

/// Reports a circle where its first task says that it waits for the last.
fn report_circle(tasks: &[TaskParts<'_>], cycle: &Cycle, report: &mut Report<'_>) {
    let (Some(first), Some(last)) = (cycle.chain.first(), cycle.chain.iter().rev().nth(1)) else { return };
    let start = tasks.iter().find(|task| task.name.is_some_and(|name| name.text == first));
    let at = start.and_then(|task| task.depends_on.iter().find(|word| word.text == last));
    if let Some(word) = at {
        let hint = Some("take one of them out of a `depends_on`".to_owned());
        report.add(word.at, cycle.to_string(), hint);
    }
}

/// Takes a circle apart, so that the next one is found; or all there are.
fn cut(sketch: &mut Workflow, cycle: &Cycle, all: bool) {
    let last = cycle.chain.iter().rev().nth(1);
    for task in sketch.tasks.iter_mut().filter(|task| all || Some(&task.name) == cycle.chain.first()) {
        task.depends_on.retain(|name| !all && Some(name) != last);
    }
}
