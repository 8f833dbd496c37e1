//! The height of each node: clear of the others in its column, and as level with its neighbours as possible.

use crate::columns::Columns;
use crate::layout::{BOX_HEIGHT, GRID};

/// Free space around a box, above and below together.
const BOX_GAP: i32 = 20;
/// The distance between two dummy nodes.
const DUMMY_GAP: i32 = 12;
/// After this many rounds, nothing moves visibly any more.
const ROUNDS: usize = 24;

/// The middle of each node, counted from an arbitrary height, on the grid.
pub(crate) fn heights(graph: &Columns) -> Vec<i32> {
    let mut heights = vec![0.0; graph.len()];
    for column in &graph.columns {
        settle(graph, column, &mut heights, &[]);
    }
    for round in 0..ROUNDS {
        // In the last rounds both sides pull, so that a task ends up in the middle of what it joins.
        let sides: &[Side] = match (round % 2, round + 4 < ROUNDS) {
            (0, true) => &[Columns::before],
            (_, true) => &[Columns::after],
            _ => &[Columns::before, Columns::after],
        };
        for step in 0..graph.columns.len() {
            let at = if round % 2 == 0 { step } else { graph.columns.len() - 1 - step };
            settle(graph, &graph.columns[at], &mut heights, sides);
        }
    }
    // All distances are multiples of the grid, so rounding keeps them.
    let mut heights: Vec<i32> =
        heights.into_iter().map(|height| (height / f64::from(GRID)).round() as i32 * GRID).collect();
    level(graph, &mut heights);
    heights
}

/// Straightens long edges where there is room: consecutive dummy nodes move to one height, as far as the nodes above and
/// below allow.
fn level(graph: &Columns, heights: &mut [i32]) {
    let beside = beside(graph);
    for task in graph.tasks() {
        let dummies: Vec<usize> = graph.dummies_of(task).collect();
        let mut rest = &dummies[..];
        while !rest.is_empty() {
            let (run, from, to) = level_run(graph, heights, &beside, rest);
            let mean = run.iter().map(|dummy| heights[*dummy]).sum::<i32>() / run.len() as i32;
            let height = (mean / GRID * GRID).clamp(from, to);
            run.iter().for_each(|dummy| heights[*dummy] = height);
            rest = &rest[run.len()..];
        }
    }
}

/// The longest prefix of some dummy nodes that fits at one height, and the bounds of that height.
fn level_run<'a>(
    graph: &Columns,
    heights: &[i32],
    beside: &[Beside],
    dummies: &'a [usize],
) -> (&'a [usize], i32, i32) {
    let (mut from, mut to, mut count) = (i32::MIN, i32::MAX, 0);
    for dummy in dummies {
        let (above, below) = beside[*dummy];
        let highest = above.map_or(from, |above| from.max(heights[above] + distance(graph, above, *dummy)));
        let lowest = below.map_or(to, |below| to.min(heights[below] - distance(graph, *dummy, below)));
        if highest > lowest {
            break;
        }
        (from, to, count) = (highest, lowest, count + 1);
    }
    (&dummies[..count], from, to)
}

/// The nodes right above and below one in its column.
type Beside = (Option<usize>, Option<usize>);

fn beside(graph: &Columns) -> Vec<Beside> {
    let mut beside = vec![(None, None); graph.len()];
    for pair in graph.columns.iter().flat_map(|column| column.windows(2)) {
        beside[pair[0]].1 = Some(pair[1]);
        beside[pair[1]].0 = Some(pair[0]);
    }
    beside
}

/// The neighbours of a node on one side of it.
type Side = fn(&Columns, usize) -> &[usize];

/// Moves one column to where its neighbours pull it: the least squares that keep all distances, found by joining
/// whatever would overlap into blocks that move as one (pool adjacent violators).
fn settle(graph: &Columns, column: &[usize], heights: &mut [f64], sides: &[Side]) {
    let mut blocks: Vec<Block> = Vec::new();
    let mut offset = 0.0;
    for (position, node) in column.iter().enumerate() {
        if position > 0 {
            offset += f64::from(distance(graph, column[position - 1], *node));
        }
        let (desired, weight) = pull(graph, *node, heights, sides);
        let mut block = Block { sum: (desired - offset) * weight, weight, count: 1 };
        while let Some(above) = blocks.pop_if(|above| above.height() > block.height()) {
            block.join(&above);
        }
        blocks.push(block);
    }
    let settled = blocks.iter().flat_map(|block| std::iter::repeat_n(block.height(), block.count));
    let mut offset = 0.0;
    for (position, (node, height)) in column.iter().zip(settled).enumerate() {
        if position > 0 {
            offset += f64::from(distance(graph, column[position - 1], *node));
        }
        heights[*node] = height + offset;
    }
}

/// Nodes that touch and move as one.
struct Block {
    sum: f64,
    weight: f64,
    count: usize,
}

impl Block {
    fn height(&self) -> f64 {
        self.sum / self.weight
    }

    fn join(&mut self, other: &Self) {
        self.sum += other.sum;
        self.weight += other.weight;
        self.count += other.count;
    }
}

/// The height that a node's neighbours pull it to, and how strongly: long edges most, since their bends are most visible.
fn pull(graph: &Columns, node: usize, heights: &[f64], sides: &[Side]) -> (f64, f64) {
    let (mut sum, mut weights) = (0.0, 0.0);
    for neighbour in sides.iter().flat_map(|side| side(graph, node)) {
        let weight = match (graph.is_dummy(node), graph.is_dummy(*neighbour)) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        };
        sum += heights[*neighbour] * weight;
        weights += weight;
    }
    if weights > 0.0 { (sum / weights, weights) } else { (heights[node], 0.1) }
}

/// The minimum distance between the middles of two consecutive nodes of a column.
fn distance(graph: &Columns, above: usize, below: usize) -> i32 {
    match (graph.is_dummy(above), graph.is_dummy(below)) {
        (true, true) => DUMMY_GAP,
        (false, false) => BOX_HEIGHT + BOX_GAP,
        _ => (BOX_HEIGHT + BOX_GAP) / 2,
    }
}
