//! A version's graph, compiled once: acyclic by construction, immutable, kept apart from progress.

use std::collections::{BTreeMap, BTreeSet};

use model::{Child, TaskIndex, TaskKind, TaskSpec, Workflow};
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

/// The compiled graph of one version. The dependants of a task are found without visiting other tasks.
#[derive(Debug)]
pub struct Graph {
    workflow: Workflow,
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    parents: BTreeSet<TaskIndex>,
    dependants: Vec<TaskIndex>,
    branches: BTreeSet<TaskIndex>,
}

/// Tasks that wait for each other, in the order in which they do; the first is repeated at the end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tasks depend on each other in a cycle: {}", chain.join(" → "))]
pub struct Cycle {
    /// The names along the circle.
    pub chain: Vec<String>,
}

impl Graph {
    /// Compiles a definition. Names in `depends_on` that are no task are passed over: the language refuses
    /// them before, with their position.
    pub fn compile(workflow: Workflow) -> Result<Self, Cycle> {
        let positions: BTreeMap<&str, TaskIndex> = workflow
            .tasks
            .iter()
            .zip(0..)
            .map(|(task, index)| (task.name.as_str(), TaskIndex(index)))
            .collect();
        let mut nodes: Vec<Node> = workflow.tasks.iter().map(|_| Node::default()).collect();
        for (task, index) in workflow.tasks.iter().zip((0..).map(TaskIndex)) {
            let find = |name: &String| positions.get(name.as_str()).copied();
            nodes[index.at()].parents.extend(task.depends_on.iter().filter_map(find));
            for branch in task.cases.iter().flat_map(|case| &case.next).filter_map(find) {
                nodes[index.at()].branches.insert(branch);
                nodes[branch.at()].parents.insert(index);
            }
        }
        for index in (0..nodes.len() as u32).map(TaskIndex) {
            for parent in nodes[index.at()].parents.clone() {
                nodes[parent.at()].dependants.push(index);
            }
        }
        match find_cycle(&nodes) {
            Some(circle) => {
                let names = circle.iter().map(|index| workflow.tasks[index.at()].name.clone());
                Err(Cycle { chain: names.collect() })
            }
            None => Ok(Self { workflow, nodes }),
        }
    }

    /// The definition it was compiled from.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// How many tasks there are.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether there is no task at all; a valid definition has at least one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The indices of all tasks of the definition, in order.
    pub fn indices(&self) -> impl Iterator<Item = TaskIndex> + use<> {
        (0..self.len()).map(TaskIndex)
    }

    /// The definition of one task.
    pub fn spec(&self, task: TaskIndex) -> &TaskSpec {
        &self.workflow.tasks[task.at()]
    }

    /// Whether there is such a task, or such a child.
    pub fn has(&self, task: TaskIndex, child: Option<Child>) -> bool {
        match child {
            Some(child) => child.of.0 < self.len() && self.spec(child.of).fan_out.is_some(),
            None => task.0 < self.len(),
        }
    }

    /// The definition of one task, which may be a child of a fan-out.
    pub fn spec_at(&self, task: TaskIndex, child: Option<Child>) -> &TaskSpec {
        match child.and_then(|child| self.spec(child.of).fan_out.as_ref()) {
            Some(fan_out) => &fan_out.task,
            None => self.spec(task),
        }
    }

    /// The name of one task, which may be a child of a fan-out: the fan-out's name with the child's place.
    pub fn name_at(&self, task: TaskIndex, child: Option<Child>) -> String {
        match child {
            Some(child) => format!("{}__{}", self.spec(child.of).name, child.item),
            None => self.spec(task).name.clone(),
        }
    }

    /// The index of the task of that name.
    pub fn index_of(&self, name: &str) -> Option<TaskIndex> {
        self.workflow
            .tasks
            .iter()
            .zip(0..)
            .find(|(task, _)| task.name == name)
            .map(|(_, index)| TaskIndex(index))
    }

    /// The tasks that one depends on directly: those it names, and a switch that names it.
    pub fn parents(&self, task: TaskIndex) -> &BTreeSet<TaskIndex> {
        &self.nodes[task.at()].parents
    }

    /// Whether `task` goes on only if the switch `parent` chooses it.
    pub fn is_branch(&self, parent: TaskIndex, task: TaskIndex) -> bool {
        self.nodes[parent.at()].branches.contains(&task)
    }

    /// The tasks that wait for a signal of this name.
    pub fn waiting_for<'a>(&'a self, signal: &'a str) -> impl Iterator<Item = TaskIndex> + 'a {
        let waits =
            move |spec: &TaskSpec| spec.kind == TaskKind::WaitForSignal && spec.config["signal"] == signal;
        self.indices().filter(move |index| waits(self.spec(*index)))
    }

    /// The tasks that depend on one directly.
    pub fn dependants(&self, task: TaskIndex) -> &[TaskIndex] {
        &self.nodes[task.at()].dependants
    }

    /// Every task that one depends on, directly or through others, in index order.
    pub fn ancestors(&self, task: TaskIndex) -> Vec<TaskIndex> {
        let mut seen = vec![false; self.nodes.len()];
        let mut open: Vec<TaskIndex> = self.parents(task).iter().copied().collect();
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut seen[next.at()], true) {
                open.extend(self.parents(next));
            }
        }
        self.indices().filter(|index| seen[index.at()]).collect()
    }

    /// Every task that depends on one of these, directly or through others.
    pub fn descendants(&self, tasks: impl IntoIterator<Item = TaskIndex>) -> BTreeSet<TaskIndex> {
        let mut found = BTreeSet::new();
        let mut open: Vec<TaskIndex> = tasks.into_iter().collect();
        while let Some(task) = open.pop() {
            open.extend(self.dependants(task).iter().filter(|next| found.insert(**next)));
        }
        found
    }
}

/// One circle, if there is any, from its lowest task round to it again.
fn find_cycle(nodes: &[Node]) -> Option<Vec<TaskIndex>> {
    let edges =
        nodes.iter().zip(0u32..).flat_map(|(node, from)| node.dependants.iter().map(move |to| (from, to.0)));
    let mut graph = DiGraph::<(), (), u32>::with_capacity(nodes.len(), 0);
    for _ in nodes {
        graph.add_node(());
    }
    graph.extend_with_edges(edges);
    toposort(&graph, None).err()?;
    let within = kosaraju_scc(&graph)
        .into_iter()
        .find(|group| group.len() > 1 || graph.contains_edge(group[0], group[0]))
        .expect("a graph without a topological order has a circle");
    Some(walk_round(&graph, &within))
}

/// Walks along edges inside a strongly connected group until a task comes up again.
fn walk_round(graph: &DiGraph<(), ()>, group: &[NodeIndex]) -> Vec<TaskIndex> {
    let start = *group.iter().min().expect("a group has members");
    let mut path = vec![start];
    loop {
        let here = path[path.len() - 1];
        let next = graph
            .neighbors(here)
            .filter(|node| group.contains(node))
            .min()
            .expect("it leads on within its group");
        if let Some(from) = path.iter().position(|node| *node == next) {
            path.drain(..from);
            path.push(next);
            return path.into_iter().map(|node| TaskIndex(node.index() as u32)).collect();
        }
        path.push(next);
    }
}
