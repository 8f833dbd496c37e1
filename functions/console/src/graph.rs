//! The graph of a workflow or of a run, as SVG that is part of a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use api::Graph;
use drawing::{Edge, Layout, Rect, Room};
use model::{Instant, Task, TaskIndex, TaskState};

use crate::ask::part;
use crate::show::{self, Markup, escaped};

/// Boxes have room for the mark of a state and the progress of a fan-out.
const ROOM: Room = Room { smallest: 200, padding: 60 };

/// The graph of a definition: each task leads to the source.
pub(crate) fn of_definition(graph: &Graph) -> Markup {
    Drawing { graph, run: None }.drawn()
}

/// The graph of a run, with the state of each task.
pub(crate) fn of_run(graph: &Graph, run: &str, tasks: &[Task], annotations: &Annotations<'_>) -> Markup {
    let tasks: BTreeMap<TaskIndex, &Task> = tasks.iter().map(|task| (task.index, task)).collect();
    Drawing { graph, run: Some(RunTasks { run, tasks, annotations }) }.drawn()
}

/// What a run's graph shows besides the states of tasks.
pub(crate) struct Annotations<'a> {
    /// The tasks that decided when the run ended.
    pub(crate) critical: &'a BTreeSet<TaskIndex>,
    /// Why tasks were skipped, of those that have a reason of their own.
    pub(crate) skipped: &'a BTreeMap<TaskIndex, String>,
    pub(crate) now: Instant,
}

/// The tasks that decided when the run ended, or how far it is: from the one that ended last, each time the one it
/// waited for longest.
pub(crate) fn critical_path(graph: &Graph, tasks: &[Task]) -> BTreeSet<TaskIndex> {
    let tasks: BTreeMap<TaskIndex, &Task> = tasks.iter().map(|task| (task.index, task)).collect();
    let began = |task: &&&Task| task.started_at.is_some() || task.finished_at.is_some();
    let last = |task: &&Task| (task.finished_at.is_none(), task.finished_at, task.started_at);
    let ran = |task: &TaskIndex| {
        let task = *tasks.get(task)?;
        let skipped =
            matches!(task.state, TaskState::Skipped | TaskState::UpstreamFailed | TaskState::Pending);
        Some(task).filter(|task| !skipped && began(&task))
    };
    let mut path = BTreeSet::new();
    let mut next = graph.indices().filter_map(|task| ran(&task)).max_by_key(last);
    while let Some(task) = next {
        path.insert(task.index);
        next = graph.parents(task.index).iter().filter_map(ran).max_by_key(last);
    }
    if path.len() > 1 { path } else { BTreeSet::new() }
}

struct Drawing<'a> {
    graph: &'a Graph,
    run: Option<RunTasks<'a>>,
}

struct RunTasks<'a> {
    run: &'a str,
    tasks: BTreeMap<TaskIndex, &'a Task>,
    annotations: &'a Annotations<'a>,
}

impl Drawing<'_> {
    fn drawn(&self) -> Markup {
        if !Layout::is_feasible(self.graph) {
            return self.too_large();
        }
        let layout = Layout::with(self.graph, ROOM);
        let (width, height) = (layout.width, layout.height);
        let name = escaped(&self.graph.workflow().name);
        let mut out = format!(
            "<svg class=\"graph\" id=\"graph\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"group\" aria-label=\"Graph of {name}\">\n"
        );
        layout.edges.iter().for_each(|edge| self.draw_edge(&mut out, edge));
        self.graph.indices().for_each(|task| self.draw_task(&mut out, task, layout.rect(task)));
        out += "</svg>";
        Markup(out)
    }

    /// What stands in place of a picture that would be of no use.
    fn too_large(&self) -> Markup {
        let (count, workflow) = (show::number(self.graph.len()), &self.graph.workflow().name);
        let (name, source) = (escaped(workflow), part(workflow));
        Markup(format!(
            "<p class=\"quiet\" id=\"graph\">This graph of {count} tasks is too large to be drawn here. \
             <code>ebb graph {name}</code> writes it as text, and the <a href=\"/workflows/{source}/source\">source</a> \
             has all of it.</p>"
        ))
    }

    fn draw_edge(&self, out: &mut String, edge: &Edge) {
        let (line, tip) = edge.paths();
        let mut class = "edge".to_owned();
        if let Some(run) = &self.run {
            let on = |task| run.annotations.critical.contains(task);
            let state = run.tasks.get(&edge.to).map(|task| task.state);
            if matches!(state, Some(TaskState::Skipped | TaskState::Removed | TaskState::UpstreamFailed)) {
                class += " off";
            } else if on(&edge.from) && on(&edge.to) {
                class += " critical";
            }
        }
        put(
            out,
            format_args!(
                "<g class=\"{class}\" data-from=\"{}\" data-to=\"{}\"><path class=\"line\" d=\"{line}\"/>\
                 <path class=\"tip\" d=\"{tip}\"/></g>\n",
                edge.from.0, edge.to.0
            ),
        );
    }

    fn draw_task(&self, out: &mut String, index: TaskIndex, at: Rect) {
        let spec = self.graph.spec(index);
        let (name, kind) = (escaped(&spec.name), drawing::kind(spec));
        let row = self.run.as_ref().and_then(|run| Some((run, *run.tasks.get(&index)?)));
        let shape = match &row {
            Some((run, task)) => Shape::of_task(run, task, &spec.name, &kind),
            None => Shape::plain(&self.graph.workflow().name, &kind),
        };
        let Rect { x, y, width, height } = at;
        let (class, link, title) = (shape.class, shape.link, shape.title);
        let (short, note) = (escaped(&drawing::short(&spec.name)), escaped(&shape.note));
        put(
            out,
            format_args!(
                "<a href=\"{link}\" class=\"task {class}\" data-task=\"{}\">\
                 <title>{name} ({}){title}</title>\
                 <rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"9\"/>",
                index.0,
                escaped(&kind)
            ),
        );
        let text = if let Some((_, task)) = &row { draw_state(out, task, at) } else { x + 14 };
        put(
            out,
            format_args!(
                "<text class=\"name\" x=\"{text}\" y=\"{}\">{short}</text>\
                 <text class=\"kind\" x=\"{text}\" y=\"{}\">{note}</text></a>\n",
                y + 19,
                y + 35
            ),
        );
    }
}

/// The appearance of a task's box.
struct Shape {
    class: String,
    link: String,
    /// The line below its name.
    note: String,
    /// The end of its tooltip: its state, and why.
    title: String,
}

impl Shape {
    fn plain(workflow: &str, kind: &str) -> Self {
        let link = format!("/workflows/{}/source", part(workflow));
        Self { class: "plain".into(), link, note: kind.to_owned(), title: String::new() }
    }

    fn of_task(run: &RunTasks<'_>, task: &Task, name: &str, kind: &str) -> Self {
        let state = task.state.name();
        let critical = if run.annotations.critical.contains(&task.index) { " critical" } else { "" };
        let why = run.annotations.skipped.get(&task.index).map(|why| format!(": {}", escaped(why)));
        Self {
            class: format!("{state}{critical}"),
            link: format!("/runs/{}/tasks/{}", run.run, part(name)),
            note: note(kind, task, run.annotations.now),
            title: format!(", {}{}", state.replace('_', " "), why.unwrap_or_default()),
        }
    }
}

/// Draws a task's state and how far its children are. Answers where its text begins.
fn draw_state(out: &mut String, task: &Task, at: Rect) -> i32 {
    let (x, y) = (at.x + 12, at.y + (at.height - 18) / 2);
    let state = task.state.name();
    put(out, format_args!("<use href=\"#m-{state}\" x=\"{x}\" y=\"{y}\" width=\"18\" height=\"18\"/>"));
    draw_progress(out, task, at);
    at.x + 40
}

/// How many children of a fan-out have ended, as a bar at the foot of its box.
fn draw_progress(out: &mut String, task: &Task, Rect { x, y, width, height }: Rect) {
    let Some(fan) = task.fan.filter(|fan| fan.total > 0) else { return };
    let (left, top, length) = (x + 10, y + height - 5, width - 20);
    let done = i64::from(length) * i64::from(fan.ended.done) / i64::from(fan.total);
    put(
        out,
        format_args!(
            "<rect class=\"rest\" x=\"{left}\" y=\"{top}\" width=\"{length}\" height=\"2\" rx=\"1\"/>\
             <rect class=\"done\" x=\"{left}\" y=\"{top}\" width=\"{done}\" height=\"2\" rx=\"1\"/>"
        ),
    );
}

/// The line below a task's name: the progress of its children, its duration, or else its type.
fn note(kind: &str, task: &Task, now: Instant) -> String {
    if let Some(fan) = task.fan {
        let failed =
            if fan.ended.failed > 0 { format!(", {} failed", fan.ended.failed) } else { String::new() };
        return format!("{} of {}{failed}", show::number(fan.ended.done), show::number(fan.total));
    }
    let took = task.started_at.map(|from| show::span(task.finished_at.unwrap_or(now) - from));
    match (task.state, took) {
        (TaskState::Succeeded | TaskState::Failed | TaskState::Running, Some(took)) if kind.len() < 14 => {
            format!("{kind} · {took}")
        }
        (TaskState::Succeeded | TaskState::Failed | TaskState::Running, Some(took)) => took,
        _ => kind.to_owned(),
    }
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a text takes all");
}

#[cfg(test)]
mod tests {
    use language::{FileKind, SourceFile};

    use super::*;

    fn graph(text: &str) -> Graph {
        let file = SourceFile { path: "x".into(), kind: FileKind::Workflow, text: text.into() };
        Graph::compile(language::compile(&[file]).definitions.remove(0).workflow).unwrap()
    }

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn ran(index: u32, from: i64, to: i64) -> Task {
        let ended = Task { state: TaskState::Succeeded, ..Task::pending(TaskIndex(index), at(0)) };
        Task { started_at: Some(at(from)), finished_at: Some(at(to)), ..ended }
    }

    const DIAMOND: &str = "{name: d, tasks: [{name: a, type: noop}, {name: b, type: noop, depends_on: [a]}, \
                           {name: c, type: noop, depends_on: [a]}, {name: z, type: noop, depends_on: [b, c]}]}";

    #[test]
    fn the_critical_path_leads_through_what_was_waited_for_longest() {
        let (graph, tasks) = (graph(DIAMOND), [ran(0, 0, 1), ran(1, 1, 2), ran(2, 1, 9), ran(3, 9, 10)]);
        let path: Vec<u32> = critical_path(&graph, &tasks).into_iter().map(|task| task.0).collect();
        assert_eq!(path, [0, 2, 3]);
    }

    #[test]
    fn a_graph_that_would_take_too_long_is_not_drawn() {
        let tasks: Vec<String> =
            (0..1_001).map(|number| format!("{{name: t{number}, type: noop}}")).collect();
        let Markup(shown) = of_definition(&graph(&format!("{{name: long, tasks: [{}]}}", tasks.join(", "))));
        assert!(shown.contains("ebb graph long") && !shown.contains("<svg"), "{shown}");
    }

    #[test]
    fn a_fan_out_is_one_box_that_counts_its_children() {
        let graph =
            graph("{name: w, tasks: [{name: split, type: fan_out, for_each: range(3), task: {type: noop}}]}");
        let ended = model::task::Tally { done: 4_000, succeeded: 3_998, failed: 2, skipped: 0 };
        let fan = model::Fan { first: TaskIndex(1), total: 10_000, released: 5_000, ended };
        let task = Task { state: TaskState::Sleeping, fan: Some(fan), ..Task::pending(TaskIndex(0), at(0)) };
        let annotations = Annotations { critical: &BTreeSet::new(), skipped: &BTreeMap::new(), now: at(1) };
        let Markup(svg) = of_run(&graph, "r", &[task], &annotations);
        assert_eq!(svg.matches("class=\"box\"").count(), 1);
        assert!(svg.contains("4\u{202f}000 of 10\u{202f}000, 2 failed"), "{svg}");
    }

    #[test]
    fn a_task_that_was_skipped_says_why_as_text() {
        let graph = graph("{name: w, tasks: [{name: a, type: noop}]}");
        let task = Task { state: TaskState::Skipped, ..Task::pending(TaskIndex(0), at(0)) };
        let skipped = BTreeMap::from([(TaskIndex(0), "when 1 < 0 <b>".to_owned())]);
        let annotations = Annotations { critical: &BTreeSet::new(), skipped: &skipped, now: at(1) };
        let Markup(svg) = of_run(&graph, "r", &[task], &annotations);
        assert!(svg.contains("skipped: when 1 &lt; 0 &lt;b&gt;</title>"), "{svg}");
    }
}
