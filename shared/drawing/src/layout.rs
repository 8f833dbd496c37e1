//! Where everything is, in pixels: columns from left to right, each task after everything it waits for.

use engine::Graph;
use model::{TaskIndex, TaskSpec};

use crate::columns::{self, Columns};
use crate::{heights, label, order};

/// Heights are multiples of this, so that what is nearly level is level.
pub(crate) const GRID: i32 = 4;
/// How high a box is.
pub(crate) const BOX_HEIGHT: i32 = 44;
const MARGIN: i32 = 24;
/// The widths of a letter of a name and of a type.
const NAME_LETTER: i32 = 8;
const KIND_LETTER: i32 = 7;

/// How wide boxes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// No box is narrower.
    pub smallest: i32,
    /// Free space in a box left and right of what is written, together.
    pub padding: i32,
}

impl Default for Room {
    fn default() -> Self {
        Self { smallest: 96, padding: 32 }
    }
}

/// A point of the picture; `y` grows downwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The distance from the left edge.
    pub x: i32,
    /// The distance from the top edge.
    pub y: i32,
}

/// The box of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rect {
    /// The x coordinate of its left side.
    pub x: i32,
    /// The y coordinate of its upper side.
    pub y: i32,
    /// From left to right.
    pub width: i32,
    /// From top to bottom.
    pub height: i32,
}

/// The way from a task to one that depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The task that comes first.
    pub from: TaskIndex,
    /// The task that waits for it.
    pub to: TaskIndex,
    /// From the right side of one box to the left side of the other, ever further right. Two points at one height
    /// are joined by a line, others by a curve that is level at both ends.
    pub points: Vec<Point>,
}

/// The positions of the tasks and edges of a graph, to draw over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// How wide the picture is, margins included.
    pub width: i32,
    /// How high the picture is, margins included.
    pub height: i32,
    /// The box of each task, by its index.
    pub boxes: Vec<Rect>,
    /// The edges, by the tasks they come from.
    pub edges: Vec<Edge>,
}

/// The maximum number of tasks of a picture that is drawn for someone who waits.
const MAX_TASKS: u32 = 1_000;

/// The maximum length of all its edges together, in columns. Each column that an edge passes takes a place.
const MAX_LENGTH: usize = 20_000;

impl Layout {
    /// Whether a graph can be laid out in a moment, and would be of use as a picture. It is counted, and nothing is laid out.
    pub fn is_feasible(graph: &Graph) -> bool {
        graph.len() <= MAX_TASKS && columns::length(graph) <= MAX_LENGTH
    }

    /// Lays out a graph; the same graph always gives the same layout.
    pub fn of(graph: &Graph) -> Self {
        Self::with(graph, Room::default())
    }

    /// Lays out a graph with boxes that leave room for more than their texts.
    pub fn with(graph: &Graph, room: Room) -> Self {
        let mut columns = Columns::of(graph);
        order::untangle(&mut columns);
        let mut heights = heights::heights(&columns);
        let shift = MARGIN + BOX_HEIGHT / 2 - heights.iter().min().copied().unwrap_or_default();
        heights.iter_mut().for_each(|height| *height += shift);
        let bands = bands(graph, &columns, &heights, room);
        let boxes: Vec<Rect> =
            graph.indices().map(|task| rect(task.at(), &columns, &bands, &heights)).collect();
        let lowest = heights.iter().max().map_or(0, |height| height + BOX_HEIGHT / 2);
        let width = bands.last().map_or(0, |band| band.left + band.width);
        let edges = edges(graph, &columns, &bands, &heights);
        Self { width: width + MARGIN, height: lowest + MARGIN, boxes, edges }
    }

    /// The box of one task.
    pub fn rect(&self, task: TaskIndex) -> Rect {
        self.boxes[task.at()]
    }
}

/// The part of the picture that a column takes.
struct Band {
    left: i32,
    width: i32,
}

impl Band {
    fn right(&self) -> i32 {
        self.left + self.width
    }
}

/// All columns from left to right, each as wide as its widest box, with more room where edges are steep.
fn bands(graph: &Graph, columns: &Columns, heights: &[i32], room: Room) -> Vec<Band> {
    let mut left = MARGIN;
    let mut bands = Vec::new();
    for column in &columns.columns {
        let tasks = column.iter().filter(|node| !columns.is_dummy(**node));
        let widths = tasks.map(|task| box_width(&graph.workflow().tasks[*task], room));
        let width = widths.max().unwrap_or(room.smallest);
        bands.push(Band { left, width });
        let climbs = column.iter().flat_map(|from| {
            columns.after(*from).iter().map(move |to| (heights[*from] - heights[*to]).abs())
        });
        left += width + (40 + climbs.max().unwrap_or_default() / 6).clamp(48, 200);
    }
    bands
}

fn box_width(task: &TaskSpec, room: Room) -> i32 {
    let name = label::width(&label::short(&task.name)) as i32 * NAME_LETTER;
    let kind = label::width(&label::kind(task)) as i32 * KIND_LETTER;
    (name.max(kind) + room.padding).max(room.smallest)
}

fn rect(task: usize, columns: &Columns, bands: &[Band], heights: &[i32]) -> Rect {
    let band = &bands[columns.column(task)];
    Rect { x: band.left, y: heights[task] - BOX_HEIGHT / 2, width: band.width, height: BOX_HEIGHT }
}

fn edges(graph: &Graph, columns: &Columns, bands: &[Band], heights: &[i32]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for from in graph.indices() {
        for to in columns::dependants(graph, from) {
            let points = route(from.at(), to, columns, bands, heights);
            edges.push(Edge { from, to: TaskIndex(to as u32), points });
        }
    }
    edges
}

/// Out of one box, level through the dummy nodes, into the other.
fn route(from: usize, to: usize, columns: &Columns, bands: &[Band], heights: &[i32]) -> Vec<Point> {
    let band = |node: usize| &bands[columns.column(node)];
    let mut points = vec![Point { x: band(from).right(), y: heights[from] }];
    for dummy in columns.dummies(from, to) {
        let y = heights[dummy];
        points.push(Point { x: band(dummy).left, y });
        points.push(Point { x: band(dummy).right(), y });
    }
    points.push(Point { x: band(to).left, y: heights[to] });
    straightened(points)
}

/// Without the points in the middle of a level stretch.
fn straightened(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        if let [.., before, last] = kept[..]
            && before.y == last.y
            && last.y == point.y
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
