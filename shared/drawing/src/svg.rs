//! The picture as a standalone SVG, for light and dark screens.

use std::fmt::Write;

use engine::Graph;
use model::TaskIndex;

use crate::label;
use crate::layout::{Edge, Layout, Rect};

const STYLE: &str = include_str!("style.css");
/// The arrow's tip, which ends where the box begins.
const TIP: i32 = 7;

/// Draws the graph: a box for each task with its name and type, an arrow to each task that waits for it.
pub fn svg(graph: &Graph) -> String {
    let layout = Layout::of(graph);
    let (width, height) = (layout.width, layout.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ebb-graph\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
        escaped(&graph.workflow().name)
    );
    out += "<g class=\"edges\">\n";
    layout.edges.iter().for_each(|edge| draw_edge(&mut out, edge));
    out += "</g>\n<g class=\"tasks\">\n";
    graph.indices().for_each(|task| draw_task(&mut out, graph, task, layout.rect(task)));
    out += "</g>\n</svg>\n";
    out
}

fn draw_edge(out: &mut String, edge: &Edge) {
    let (line, tip) = edge.paths();
    put(out, format_args!("<path class=\"line\" d=\"{line}\"/><path class=\"tip\" d=\"{tip}\"/>\n"));
}

impl Edge {
    /// The line and the arrow's tip, as data of SVG paths.
    pub fn paths(&self) -> (String, String) {
        let mut path = String::new();
        let mut last = self.points[0];
        put(&mut path, format_args!("M{} {}", last.x, last.y));
        for (number, point) in self.points.iter().enumerate().skip(1) {
            let is_end = number + 1 == self.points.len();
            let x = if is_end { point.x - TIP } else { point.x };
            if point.y == last.y {
                put(&mut path, format_args!("H{x}"));
            } else {
                let middle = (last.x + x) / 2;
                put(&mut path, format_args!("C{middle} {} {middle} {} {x} {}", last.y, point.y, point.y));
            }
            last = *point;
        }
        let (x, y) = (last.x, last.y);
        (path, format!("M{x} {y}l-{TIP} -4v8z"))
    }
}

fn draw_task(out: &mut String, graph: &Graph, task: TaskIndex, at: Rect) {
    let spec = graph.spec(task);
    let (name, kind) = (escaped(&spec.name), escaped(&label::kind(spec)));
    let (middle, upper, lower) = (at.x + at.width / 2, at.y + 19, at.y + 35);
    let Rect { x, y, width, height } = at;
    put(
        out,
        format_args!(
            "<g class=\"task\" data-task=\"{name}\"><title>{name} ({kind})</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\
             <text class=\"name\" x=\"{middle}\" y=\"{upper}\">{}</text>\
             <text class=\"kind\" x=\"{middle}\" y=\"{lower}\">{kind}</text></g>\n",
            escaped(&label::short(&spec.name))
        ),
    );
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a string takes everything");
}

/// Escapes a text for elements and attributes. Characters that XML forbids become replacement characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}
