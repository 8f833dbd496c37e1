//! The order within each column: few edges cross, and what belongs together stays together.

use crate::columns::Columns;

/// More sweeps hardly ever find anything better.
const SWEEPS: usize = 16;

/// The neighbours of a place on one side of it.
type Side = fn(&Columns, usize) -> &[usize];

/// Orders every column. Each sweep sorts one column after the other by where its neighbours stand, to and fro; the
/// order with the fewest crossings is kept.
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

/// For each place, the part of the graph it is connected with: parts are drawn below each other.
fn groups(graph: &Columns) -> Vec<usize> {
    let mut groups = vec![usize::MAX; graph.len()];
    for start in 0..graph.len() {
        let mut open = vec![start];
        while let Some(place) = open.pop() {
            if groups[place] == usize::MAX {
                groups[place] = start;
                open.extend(graph.before(place).iter().chain(graph.after(place)));
            }
        }
    }
    groups
}

/// A first order: depth first, so that branches lie side by side.
fn arrange(graph: &mut Columns, groups: &[usize]) {
    let mut seen = vec![false; graph.len()];
    let mut open: Vec<usize> = (0..graph.len()).filter(|place| graph.before(*place).is_empty()).collect();
    open.sort_by_key(|place| std::cmp::Reverse((groups[*place], *place)));
    let mut columns = vec![Vec::new(); graph.columns.len()];
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut seen[place], true) {
            columns[graph.column(place)].push(place);
            open.extend(graph.after(place).iter().rev());
        }
    }
    graph.columns = columns;
}

/// Sorts one column by the mean position of the neighbours on one side.
fn sort(graph: &mut Columns, groups: &[usize], positions: &mut [usize], column: usize, neighbours: Side) {
    let mut places = std::mem::take(&mut graph.columns[column]);
    let mean = |place: usize| {
        let beside = neighbours(graph, place);
        let sum: usize = beside.iter().map(|neighbour| positions[*neighbour]).sum();
        if beside.is_empty() { positions[place] as f64 } else { sum as f64 / beside.len() as f64 }
    };
    let mut keyed: Vec<(usize, f64, usize)> =
        places.iter().map(|place| (groups[*place], mean(*place), *place)).collect();
    keyed.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    for (position, (_, _, place)) in keyed.into_iter().enumerate() {
        places[position] = place;
        positions[place] = position;
    }
    graph.columns[column] = places;
}

/// For each place, how many stand above it in its column.
fn positions(graph: &Columns) -> Vec<usize> {
    let mut positions = vec![0; graph.len()];
    for column in &graph.columns {
        for (position, place) in column.iter().enumerate() {
            positions[*place] = position;
        }
    }
    positions
}

fn crossings(graph: &Columns, positions: &[usize]) -> usize {
    graph.columns.windows(2).map(|pair| crossings_after(graph, &pair[0], pair[1].len(), positions)).sum()
}

/// How many edges cross between a column and the next: pairs whose ends stand the other way round.
fn crossings_after(graph: &Columns, column: &[usize], width: usize, positions: &[usize]) -> usize {
    // A Fenwick tree over the ends seen so far.
    let mut tree = vec![0; width + 1];
    let (mut seen, mut crossings) = (0, 0);
    for place in column {
        let mut ends: Vec<usize> = graph.after(*place).iter().map(|end| positions[*end] + 1).collect();
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
