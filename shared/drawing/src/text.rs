//! The picture as text: a task to a line, in an order in which they may run, with rails for what leads where.
//!
//! Every task on a rail leads to every task that branches off it further down. Tasks that lead to the
//! same others share a rail, so a join of fifty is as narrow as a join of two.

use std::collections::BTreeSet;

use engine::Graph;
use model::TaskIndex;

use crate::columns::dependants;
use crate::label;

/// More parents than this are counted, not named: the rails show them.
const MAX_NAMES: usize = 3;

/// Draws the graph for a terminal.
pub fn text(graph: &Graph) -> String {
    let mut rails = Rails::default();
    let rows: Vec<[String; 4]> = sequence(graph)
        .into_iter()
        .map(|task| {
            let spec = graph.spec(task);
            [rails.row(graph, task), spec.name.clone(), label::kind(spec), parents(graph, task)]
        })
        .collect();
    let widths: Vec<usize> = (0..4)
        .map(|cell| rows.iter().map(|row| label::width(&row[cell])).max().unwrap_or_default())
        .collect();
    let pad = |row: &[String; 4]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| cell.clone() + &" ".repeat(width - label::width(cell)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(pad).collect()
}

/// The tasks in an order in which they may run: each branch is followed as far as it goes.
fn sequence(graph: &Graph) -> Vec<TaskIndex> {
    let mut missing: Vec<usize> = graph.indices().map(|task| graph.parents(task).len()).collect();
    let mut ready: Vec<TaskIndex> = graph.indices().filter(|task| missing[task.at()] == 0).collect();
    ready.reverse();
    let mut sequence = Vec::new();
    while let Some(task) = ready.pop() {
        sequence.push(task);
        for dependant in graph.dependants(task).iter().rev() {
            missing[dependant.at()] -= 1;
            if missing[dependant.at()] == 0 {
                ready.push(*dependant);
            }
        }
    }
    sequence
}

fn parents(graph: &Graph, task: TaskIndex) -> String {
    let parents: BTreeSet<TaskIndex> = graph.parents(task).iter().copied().collect();
    let names: Vec<&str> = parents.into_iter().map(|parent| graph.spec(parent).name.as_str()).collect();
    match names.len() {
        0 => String::new(),
        1..=MAX_NAMES => format!("← {}", names.join(", ")),
        count => format!("← {} and {} more", names[..MAX_NAMES - 1].join(", "), count + 1 - MAX_NAMES),
    }
}

#[derive(Default)]
struct Rails {
    /// The tasks that have yet to branch off each rail; empty where there is no rail.
    open: Vec<BTreeSet<usize>>,
    /// The rail on which the row above ended: a task right below it would look connected.
    closed: Option<usize>,
}

impl Rails {
    /// Draws the row of a task and moves on below it.
    fn row(&mut self, graph: &Graph, task: TaskIndex) -> String {
        let mut entries = BTreeSet::new();
        for (rail, open) in self.open.iter_mut().enumerate() {
            if open.remove(&task.at()) {
                entries.insert(rail);
            }
        }
        let onwards = dependants(graph, task);
        let at = self.rail_for(&entries, &onwards);
        let row = self.draw(&entries, at);
        self.closed = onwards.is_empty().then_some(at);
        self.open[at] = onwards;
        row
    }

    /// The rail of a task: one that leads to the same tasks, else one that ends here, else a free one.
    fn rail_for(&mut self, entries: &BTreeSet<usize>, onwards: &BTreeSet<usize>) -> usize {
        let is_free = |rail: &usize| self.open.get(*rail).is_none_or(BTreeSet::is_empty);
        let leads_there = |rail: &usize| self.open[*rail] == *onwards && !entries.contains(rail);
        let shared = (0..self.open.len()).find(|rail| !onwards.is_empty() && leads_there(rail));
        let ending = || entries.iter().copied().find(is_free);
        let first = entries.first().map_or(0, |rail| rail + 1);
        let free = || (first..).find(|rail| is_free(rail) && Some(*rail) != self.closed);
        let at = shared.or_else(ending).or_else(free).expect("there is always a free rail further right");
        self.open.resize_with(self.open.len().max(at + 1), BTreeSet::new);
        at
    }

    fn draw(&self, entries: &BTreeSet<usize>, at: usize) -> String {
        let first = entries.first().map_or(at, |rail| at.min(*rail));
        let last = entries.last().map_or(at, |rail| at.max(*rail));
        let mut row = String::new();
        for rail in 0..self.open.len() {
            let is_across = first < rail && rail < last;
            row.push(match self.open[rail].is_empty() {
                _ if rail == at => head(entries, at),
                ends if entries.contains(&rail) => branch(rail == first, rail == last, ends),
                false => '│',
                true if is_across => '─',
                true => ' ',
            });
            row.push(if first <= rail && rail < last { '─' } else { ' ' });
        }
        row.trim_end().to_owned()
    }
}

/// A task: a dot if it starts by itself, else the tip of the arrow that leads to it.
fn head(entries: &BTreeSet<usize>, at: usize) -> char {
    match entries.first() {
        None => '●',
        _ if entries.contains(&at) => '▼',
        Some(first) if *first < at => '▶',
        Some(_) => '◀',
    }
}

/// The branch of a row from a rail, which ends there or continues.
fn branch(is_first: bool, is_last: bool, ends: bool) -> char {
    match (is_first, is_last, ends) {
        (true, _, true) => '╰',
        (true, _, false) => '├',
        (_, true, true) => '╯',
        (_, true, false) => '┤',
        (_, _, true) => '┴',
        (_, _, false) => '┼',
    }
}
