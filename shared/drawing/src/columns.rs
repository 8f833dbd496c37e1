//! Which column everything stands in: a task right after the last of its parents, and lanes for longer edges.

use std::collections::BTreeSet;

use engine::Graph;
use model::TaskIndex;

/// The graph with every edge leading to the very next column.
///
/// Its places are the tasks, by their indices, and after them the lanes. All edges of a task share one lane in each
/// column that they pass, which keeps pictures calm and their number bounded.
pub(crate) struct Columns {
    /// The places of each column, from top to bottom.
    pub(crate) columns: Vec<Vec<usize>>,
    places: Vec<Place>,
    tasks: usize,
}

#[derive(Default)]
struct Place {
    column: usize,
    before: Vec<usize>,
    after: Vec<usize>,
    /// For a task: the first of its lanes.
    lanes: usize,
}

impl Columns {
    pub(crate) fn of(graph: &Graph) -> Self {
        let depths = depths(graph);
        let mut columns = vec![Vec::new(); depths.iter().max().map_or(0, |deepest| deepest + 1)];
        let mut places = Vec::new();
        for (task, column) in depths.into_iter().enumerate() {
            columns[column].push(task);
            places.push(Place { column, ..Place::default() });
        }
        let mut all = Self { columns, tasks: places.len(), places };
        for task in graph.indices() {
            all.connect(task.at(), &dependants(graph, task));
        }
        all
    }

    /// Leads the edges of one task to its dependants, through lanes where they are further away than one column.
    fn connect(&mut self, task: usize, dependants: &BTreeSet<usize>) {
        self.places[task].lanes = self.places.len();
        let start = self.places[task].column;
        let end = dependants.iter().map(|to| self.places[*to].column).max().unwrap_or(start);
        let mut last = task;
        for column in start + 1..end {
            let lane = self.places.len();
            self.places.push(Place { column, ..Place::default() });
            self.columns[column].push(lane);
            self.link(last, lane);
            last = lane;
        }
        for to in dependants {
            let from = self.lanes(task, *to).last().unwrap_or(task);
            self.link(from, *to);
        }
    }

    fn link(&mut self, from: usize, to: usize) {
        self.places[from].after.push(to);
        self.places[to].before.push(from);
    }

    /// The lanes that an edge passes on its way.
    pub(crate) fn lanes(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        let between = self.places[to].column - self.places[from].column - 1;
        self.places[from].lanes..self.places[from].lanes + between
    }

    /// All lanes of a task, from left to right.
    pub(crate) fn lanes_of(&self, task: usize) -> std::ops::Range<usize> {
        let end = if task + 1 < self.tasks { self.places[task + 1].lanes } else { self.len() };
        self.places[task].lanes..end
    }

    /// The tasks among the places.
    pub(crate) fn tasks(&self) -> std::ops::Range<usize> {
        0..self.tasks
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_lane(&self, place: usize) -> bool {
        place >= self.tasks
    }

    /// The column that a place is in.
    pub(crate) fn column(&self, place: usize) -> usize {
        self.places[place].column
    }

    /// The places in the column before that lead here.
    pub(crate) fn before(&self, place: usize) -> &[usize] {
        &self.places[place].before
    }

    /// The places in the next column that this one leads to.
    pub(crate) fn after(&self, place: usize) -> &[usize] {
        &self.places[place].after
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
