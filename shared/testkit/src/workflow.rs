//! Workflows in short notation.

use model::{TaskKind, TaskSpec, Workflow};
use serde_json::Value;

/// A workflow of `noop` tasks, in order of appearance: `workflow("a -> b, a -> c, b -> d, c -> d")`.
///
/// A chain may be longer (`a -> b -> c`) or a single task (`a`). Change the result for anything else.
pub fn workflow(notation: &str) -> Workflow {
    let mut tasks = Vec::new();
    for chain in notation.split(',') {
        let names: Vec<&str> = chain.split("->").map(str::trim).collect();
        for name in &names {
            assert!(!name.is_empty(), "a task's name is missing in {chain:?}: write `a -> b, a -> c`");
            find_or_add(&mut tasks, name);
        }
        for link in names.windows(2) {
            depend(find_or_add(&mut tasks, link[1]), link[0]);
        }
    }
    Workflow { name: "example".to_owned(), tasks, ..Workflow::default() }
}

fn find_or_add<'a>(tasks: &'a mut Vec<TaskSpec>, name: &str) -> &'a mut TaskSpec {
    let index = tasks.iter().position(|task| task.name == name).unwrap_or_else(|| {
        tasks.push(noop(name));
        tasks.len() - 1
    });
    &mut tasks[index]
}

fn depend(task: &mut TaskSpec, upstream: &str) {
    if !task.depends_on.iter().any(|known| known == upstream) {
        task.depends_on.push(upstream.to_owned());
    }
}

fn noop(name: &str) -> TaskSpec {
    TaskSpec {
        name: name.to_owned(),
        kind: TaskKind::Noop,
        config: Value::Object(serde_json::Map::new()),
        timeout_seconds: 3600,
        queue: "light".to_owned(),
        ..TaskSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(workflow: &Workflow) -> Vec<(&str, Vec<&str>)> {
        workflow.tasks.iter().map(|task| (task.name.as_str(), upstream(task))).collect()
    }

    fn upstream(task: &TaskSpec) -> Vec<&str> {
        task.depends_on.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_diamond_is_written_as_four_arrows() {
        let diamond = workflow("a -> b, a -> c, b -> d, c -> d");
        let expected = [("a", vec![]), ("b", vec!["a"]), ("c", vec!["a"]), ("d", vec!["b", "c"])];
        assert_eq!(shape(&diamond), expected);
    }

    #[test]
    fn a_chain_may_be_long_and_a_task_may_stand_alone() {
        let expected = [("a", vec![]), ("b", vec!["a"]), ("c", vec!["b"]), ("z", vec![])];
        assert_eq!(shape(&workflow("a->b -> c,z")), expected);
        assert_eq!(shape(&workflow("a")), [("a", vec![])]);
    }

    #[test]
    fn an_arrow_written_twice_counts_once() {
        assert_eq!(shape(&workflow("a -> b, a -> b")), [("a", vec![]), ("b", vec!["a"])]);
    }

    #[test]
    #[should_panic(expected = "a task's name is missing")]
    fn an_arrow_to_nowhere_is_a_mistake() {
        workflow("a ->");
    }
}
