//! What holds for the picture of any graph.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeSet;

use ebbflow_drawing::{self as drawing, Layout, Rect};
use engine::Graph;
use model::TaskKind;
use proptest::prelude::*;
use serde_json::json;
use testkit::workflow;

/// A graph with this number of tasks and these edges, each turned to point to the later task.
fn graph(tasks: usize, edges: &[(usize, usize)]) -> Graph {
    let names = (0..tasks).map(|task| format!("t{task}"));
    let edges = edges
        .iter()
        .map(|(one, other)| (one.min(other) % tasks, one.max(other) % tasks))
        .filter(|(from, to)| from < to)
        .map(|(from, to)| format!("t{from} -> t{to}"));
    Graph::compile(workflow(&names.chain(edges).collect::<Vec<_>>().join(", "))).unwrap()
}

fn any_graph() -> impl Strategy<Value = Graph> {
    (1..60usize).prop_flat_map(|tasks| {
        prop::collection::vec((0..tasks, 0..tasks), 0..tasks * 2).prop_map(move |edges| graph(tasks, &edges))
    })
}

fn overlap(one: &Rect, other: &Rect) -> bool {
    one.x < other.x + other.width
        && other.x < one.x + one.width
        && one.y < other.y + other.height
        && other.y < one.y + one.height
}

/// The names of the tasks in the picture, in its order.
fn names(svg: &str) -> Vec<&str> {
    svg.split("data-task=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Which task leads to which, as a reader of the text sees it by following the rails.
fn read(text: &str) -> BTreeSet<(String, String)> {
    let mut edges = BTreeSet::new();
    let mut rails = vec![BTreeSet::new(); 200];
    for line in text.lines() {
        let name = line.split_whitespace().find(|word| word.starts_with('t')).unwrap();
        let signs = line.chars().take_while(|sign| *sign != 't').step_by(2).chain(std::iter::repeat(' '));
        let mut head = None;
        for (rail, sign) in rails.iter_mut().zip(signs) {
            if "▼├┤┼╰╯┴".contains(sign) {
                edges.extend(rail.iter().map(|from: &String| (from.clone(), name.to_owned())));
            }
            if "▼╰╯┴─ ".contains(sign) {
                rail.clear();
            }
            if "●▼▶◀".contains(sign) {
                head = Some(rail);
            }
        }
        head.unwrap().insert(name.to_owned());
    }
    edges
}

proptest! {
    #[test]
    fn following_the_rails_finds_every_edge_and_no_other(graph in any_graph()) {
        let text = drawing::text(&graph);
        let tasks = graph.workflow().tasks.iter();
        let edges = tasks.flat_map(|task| task.depends_on.iter().map(|from| (from.clone(), task.name.clone())));
        prop_assert_eq!(read(&text), edges.collect(), "\n{}", text);
    }

    #[test]
    fn boxes_lie_apart_and_within_the_picture(graph in any_graph()) {
        let layout = Layout::of(&graph);
        for (index, one) in layout.boxes.iter().enumerate() {
            prop_assert!(one.x > 0 && one.y > 0);
            prop_assert!(one.x + one.width < layout.width && one.y + one.height < layout.height);
            for other in &layout.boxes[index + 1..] {
                prop_assert!(!overlap(one, other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn every_edge_leads_forward_from_box_to_box(graph in any_graph()) {
        let layout = Layout::of(&graph);
        for edge in &layout.edges {
            let (from, to) = (layout.rect(edge.from), layout.rect(edge.to));
            let (first, last) = (edge.points[0], edge.points[edge.points.len() - 1]);
            prop_assert_eq!((first.x, first.y), (from.x + from.width, from.y + from.height / 2));
            prop_assert_eq!((last.x, last.y), (to.x, to.y + to.height / 2));
            prop_assert!(edge.points.windows(2).all(|pair| pair[0].x < pair[1].x));
        }
        let drawn: BTreeSet<_> = layout.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let wanted: BTreeSet<_> =
            graph.indices().flat_map(|to| graph.parents(to).iter().map(move |from| (*from, to))).collect();
        prop_assert_eq!(drawn.len(), layout.edges.len());
        prop_assert_eq!(drawn, wanted);
    }

    #[test]
    fn no_level_stretch_of_an_edge_runs_through_a_box(graph in any_graph()) {
        let layout = Layout::of(&graph);
        for edge in &layout.edges {
            for pair in edge.points.windows(2).filter(|pair| pair[0].y == pair[1].y) {
                let stretch = Rect { x: pair[0].x, y: pair[0].y, width: pair[1].x - pair[0].x, height: 1 };
                prop_assert!(!layout.boxes.iter().any(|task| overlap(task, &stretch)), "{edge:?}");
            }
        }
    }

    #[test]
    fn every_task_appears_once_and_after_what_it_waits_for(graph in any_graph()) {
        let expected: Vec<&str> = graph.workflow().tasks.iter().map(|task| task.name.as_str()).collect();
        let svg = drawing::svg(&graph);
        prop_assert_eq!(names(&svg), expected.clone());
        let text = drawing::text(&graph);
        let lines: Vec<&str> =
            text.lines().map(|line| line.split_whitespace().find(|word| word.starts_with('t')).unwrap()).collect();
        prop_assert_eq!(BTreeSet::from_iter(&lines), BTreeSet::from_iter(&expected));
        prop_assert_eq!(lines.len(), expected.len());
        let line_of = |name: &str| lines.iter().position(|line| *line == name);
        for task in &graph.workflow().tasks {
            prop_assert!(task.depends_on.iter().all(|parent| line_of(parent) < line_of(&task.name)));
        }
    }

    #[test]
    fn the_same_graph_gives_the_same_picture(tasks in 1..40usize, edges in prop::collection::vec((0..40usize, 0..40usize), 0..60)) {
        let (one, other) = (graph(tasks, &edges), graph(tasks, &edges));
        prop_assert_eq!(drawing::svg(&one), drawing::svg(&other));
        prop_assert_eq!(drawing::text(&one), drawing::text(&other));
    }

    #[test]
    fn names_are_text_and_never_markup(name in "[<>&\"'a-z🦀é\u{1}\\]\\[!-]{1,60}") {
        let mut definition = workflow("only");
        definition.name = name.clone();
        definition.tasks[0].name = name.clone();
        definition.tasks[0].kind = TaskKind::Workflow;
        definition.tasks[0].config = json!({"workflow": name});
        let svg = drawing::svg(&Graph::compile(definition).unwrap());
        let plain = drawing::svg(&Graph::compile(workflow("only")).unwrap());
        let markup = |svg: &str| svg.matches(['<', '>', '"']).count();
        prop_assert_eq!(markup(&svg), markup(&plain), "{}", svg);
        let is_entity = |rest: &str| ["lt;", "gt;", "amp;", "quot;", "#39;"].iter().any(|known| rest.starts_with(known));
        prop_assert!(svg.split('&').skip(1).all(is_entity), "{}", svg);
        prop_assert!(!svg.contains(char::from(1)), "{}", svg);
    }
}

/// Five hundred tasks in twenty columns, each waiting for one to three of the column before and one further back.
fn large() -> Graph {
    let edges: Vec<(usize, usize)> = (25..500usize)
        .flat_map(|task| {
            let back = [task - 25, task - 1 - task * 7 % 24, task.saturating_sub(40 + task * 13 % 90)];
            back.map(|parent| (parent, task))
        })
        .collect();
    graph(500, &edges)
}

#[test]
fn five_hundred_tasks_have_room_and_few_bends() {
    let layout = Layout::of(&large());
    assert_eq!(layout.boxes.len(), 500);
    let points: usize = layout.edges.iter().map(|edge| edge.points.len()).sum();
    assert!(points < layout.edges.len() * 12, "{points} points for {} edges", layout.edges.len());
}

#[test]
fn no_task_at_all_is_an_empty_picture() {
    let mut definition = workflow("only");
    definition.tasks.clear();
    let graph = Graph::compile(definition).unwrap();
    assert_eq!(drawing::text(&graph), "");
    assert!(names(&drawing::svg(&graph)).is_empty());
}

#[test]
fn a_graph_that_would_take_too_much_is_recognized_before_it_is_laid_out() {
    assert!(Layout::is_feasible(&large()));
    let chain = |count: usize| (1..count).map(|task| (task - 1, task));
    assert!(Layout::is_feasible(&graph(1_000, &chain(1_000).collect::<Vec<_>>())));
    assert!(!Layout::is_feasible(&graph(1_001, &[])), "too many tasks");
    let to_all: Vec<(usize, usize)> = chain(1_000).chain((0..998).map(|task| (task, 999))).collect();
    assert!(!Layout::is_feasible(&graph(1_000, &to_all)), "about 500,000 dummy nodes");
}
