//! The order within each column: few edges cross, and what belongs together stays together.

use crate::columns::Columns;

/// More sweeps hardly ever find anything better.
const SWEEPS: usize = 16;

/// The neighbours of a node on one side of it.
type Side = fn(&Columns, usize) -> &[usize];

/// Orders every column. Each sweep sorts one column after the other by the positions of its neighbours, in alternating
/// directions; the order with the fewest crossings is kept.
pub(crate) fn untangle(graph: &mut Columns) {
    let groups = groups(graph);
    arrange(graph, &groups);
    let mut positions = positions(graph);
    let mut best = (crossings(graph, &positions), graph.columns.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let count = graph.columns.len();
        for step in 1..count {
            let (column, neighbours) = match sweep % 2 {
                0 => (step, Columns::before as Side),
                _ => (count - 1 - step, Columns::after as Side),
            };
            sort(graph, &groups, &mut positions, column, neighbours);
        }
        let found = crossings(graph, &positions);
        if found < best.0 {
            best = (found, graph.columns.clone());
        }
    }
    graph.columns = best.1;
}

/// For each node, the part of the graph it is connected with: parts are drawn below each other.
fn groups(graph: &Columns) -> Vec<usize> {
    let mut groups = vec![usize::MAX; graph.len()];
    for start in 0..graph.len() {
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if groups[node] == usize::MAX {
                groups[node] = start;
                open.extend(graph.before(node).iter().chain(graph.after(node)));
            }
        }
    }
    groups
}

/// A first order: depth first, so that branches lie side by side.
fn arrange(graph: &mut Columns, groups: &[usize]) {
    let mut seen = vec![false; graph.len()];
    let mut open: Vec<usize> = (0..graph.len()).filter(|node| graph.before(*node).is_empty()).collect();
    open.sort_by_key(|node| std::cmp::Reverse((groups[*node], *node)));
    let mut columns = vec![Vec::new(); graph.columns.len()];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            columns[graph.column(node)].push(node);
            open.extend(graph.after(node).iter().rev());
        }
    }
    graph.columns = columns;
}

/// Sorts one column by the mean position of the neighbours on one side.
fn sort(graph: &mut Columns, groups: &[usize], positions: &mut [usize], column: usize, neighbours: Side) {
    let mut nodes = std::mem::take(&mut graph.columns[column]);
    let mean = |node: usize| {
        let beside = neighbours(graph, node);
        let sum: usize = beside.iter().map(|neighbour| positions[*neighbour]).sum();
        if beside.is_empty() { positions[node] as f64 } else { sum as f64 / beside.len() as f64 }
    };
    let mut keyed: Vec<(usize, f64, usize)> =
        nodes.iter().map(|node| (groups[*node], mean(*node), *node)).collect();
    keyed.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    for (position, (_, _, node)) in keyed.into_iter().enumerate() {
        nodes[position] = node;
        positions[node] = position;
    }
    graph.columns[column] = nodes;
}

/// For each node, the number of nodes above it in its column.
fn positions(graph: &Columns) -> Vec<usize> {
    let mut positions = vec![0; graph.len()];
    for column in &graph.columns {
        for (position, node) in column.iter().enumerate() {
            positions[*node] = position;
        }
    }
    positions
}

fn crossings(graph: &Columns, positions: &[usize]) -> usize {
    graph.columns.windows(2).map(|pair| crossings_after(graph, &pair[0], pair[1].len(), positions)).sum()
}

/// How many edges cross between a column and the next: pairs whose ends are in the opposite order.
fn crossings_after(graph: &Columns, column: &[usize], width: usize, positions: &[usize]) -> usize {
    // A Fenwick tree over the ends seen so far.
    let mut tree = vec![0; width + 1];
    let (mut seen, mut crossings) = (0, 0);
    for node in column {
        let mut ends: Vec<usize> = graph.after(*node).iter().map(|end| positions[*end] + 1).collect();
        ends.sort_unstable();
        for end in &ends {
            crossings += seen - sum_up_to(&tree, *end);
        }
        for end in &ends {
            add_at(&mut tree, *end);
        }
        seen += ends.len();
    }
    crossings
}

fn sum_up_to(tree: &[usize], mut at: usize) -> usize {
    let mut sum = 0;
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}

fn add_at(tree: &mut [usize], mut at: usize) {
    while at < tree.len() {
        tree[at] += 1;
        at += at & at.wrapping_neg();
    }
}
