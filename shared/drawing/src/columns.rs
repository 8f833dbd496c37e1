//! The column of each node: a task comes right after the last of its parents, and longer edges get dummy nodes.

use std::collections::BTreeSet;

use engine::Graph;
use model::TaskIndex;

/// A layered graph: every edge leads to the next column.
///
/// Its nodes are the tasks, by their indices, and after them the dummy nodes of long edges. All edges of a task share one
/// dummy node in each column that they pass, which keeps pictures calm and bounds the number of nodes.
pub(crate) struct Columns {
    /// The nodes of each column, from top to bottom.
    pub(crate) columns: Vec<Vec<usize>>,
    nodes: Vec<Node>,
    tasks: usize,
}

#[derive(Default)]
struct Node {
    column: usize,
    before: Vec<usize>,
    after: Vec<usize>,
    /// For a task: the first of its dummy nodes.
    dummies: usize,
}

/// How long all edges of a graph are together, in columns: at least as many as there are dummy nodes. An edge to the next
/// column has a length of one.
pub(crate) fn length(graph: &Graph) -> usize {
    let depths = depths(graph);
    let edges = graph.indices().flat_map(|task| graph.dependants(task).iter().map(move |to| (task, to)));
    edges.map(|(from, to)| depths[to.at()] - depths[from.at()]).sum()
}

impl Columns {
    pub(crate) fn of(graph: &Graph) -> Self {
        let depths = depths(graph);
        let mut columns = vec![Vec::new(); depths.iter().max().map_or(0, |deepest| deepest + 1)];
        let mut nodes = Vec::new();
        for (task, column) in depths.into_iter().enumerate() {
            columns[column].push(task);
            nodes.push(Node { column, ..Node::default() });
        }
        let mut all = Self { columns, tasks: nodes.len(), nodes };
        for task in graph.indices() {
            all.connect(task.at(), &dependants(graph, task));
        }
        all
    }

    /// Leads the edges of one task to its dependants, through dummy nodes where they skip columns.
    fn connect(&mut self, task: usize, dependants: &BTreeSet<usize>) {
        self.nodes[task].dummies = self.nodes.len();
        let start = self.nodes[task].column;
        let end = dependants.iter().map(|to| self.nodes[*to].column).max().unwrap_or(start);
        let mut last = task;
        for column in start + 1..end {
            let dummy = self.nodes.len();
            self.nodes.push(Node { column, ..Node::default() });
            self.columns[column].push(dummy);
            self.link(last, dummy);
            last = dummy;
        }
        for to in dependants {
            let from = self.dummies(task, *to).last().unwrap_or(task);
            self.link(from, *to);
        }
    }

    fn link(&mut self, from: usize, to: usize) {
        self.nodes[from].after.push(to);
        self.nodes[to].before.push(from);
    }

    /// The dummy nodes that an edge passes on its way.
    pub(crate) fn dummies(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        let between = self.nodes[to].column - self.nodes[from].column - 1;
        self.nodes[from].dummies..self.nodes[from].dummies + between
    }

    /// All dummy nodes of a task, from left to right.
    pub(crate) fn dummies_of(&self, task: usize) -> std::ops::Range<usize> {
        let end = if task + 1 < self.tasks { self.nodes[task + 1].dummies } else { self.len() };
        self.nodes[task].dummies..end
    }

    /// The tasks among the nodes.
    pub(crate) fn tasks(&self) -> std::ops::Range<usize> {
        0..self.tasks
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn is_dummy(&self, node: usize) -> bool {
        node >= self.tasks
    }

    /// The column that a node is in.
    pub(crate) fn column(&self, node: usize) -> usize {
        self.nodes[node].column
    }

    /// The nodes in the column before that lead here.
    pub(crate) fn before(&self, node: usize) -> &[usize] {
        &self.nodes[node].before
    }

    /// The nodes in the next column that this one leads to.
    pub(crate) fn after(&self, node: usize) -> &[usize] {
        &self.nodes[node].after
    }
}

/// The tasks that depend on one directly, each once.
pub(crate) fn dependants(graph: &Graph, task: TaskIndex) -> BTreeSet<usize> {
    graph.dependants(task).iter().map(|dependant| dependant.at()).collect()
}

/// For each task, the length of the longest way to it.
fn depths(graph: &Graph) -> Vec<usize> {
    let mut depths = vec![0; graph.len() as usize];
    let mut missing: Vec<usize> = graph.indices().map(|task| graph.parents(task).len()).collect();
    let mut open: Vec<TaskIndex> = graph.indices().filter(|task| missing[task.at()] == 0).collect();
    while let Some(task) = open.pop() {
        for dependant in graph.dependants(task) {
            depths[dependant.at()] = depths[dependant.at()].max(depths[task.at()] + 1);
            missing[dependant.at()] -= 1;
            if missing[dependant.at()] == 0 {
                open.push(*dependant);
            }
        }
    }
    depths
}
