//! `ebb explain`: why a run or a task is in its state.

use std::process::ExitCode;

use anyhow::Result;
use api::explain::{Explanation, TaskExplanation};

use super::connect;
use crate::args::{Explain, Shared};
use crate::output::{self, Palette};

/// The line width of explanations.
const WIDTH: usize = 100;

pub(super) async fn run(shared: &Shared, arguments: &Explain) -> Result<ExitCode> {
    let query: Vec<(&str, String)> = arguments.task.iter().map(|task| ("task", task.clone())).collect();
    let path = ["runs", &arguments.run.to_string(), "explain"];
    let explanation: Explanation = connect(shared)?.get(&path, &query).await?;
    output::print(shared, &explanation, || text(&explanation, Palette::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn text(explanation: &Explanation, palette: Palette) -> String {
    let summary = wrap(&explanation.summary, "");
    let tasks = explanation.tasks.iter().map(|task| paragraph(task, palette));
    let more = match explanation.more {
        0 => None,
        more => Some(format!("and {more} more; explain one with: ebb explain {} TASK", explanation.run)),
    };
    std::iter::once(summary).chain(tasks).chain(more).collect::<Vec<_>>().join("\n\n")
}

fn paragraph(task: &TaskExplanation, palette: Palette) -> String {
    let (sign, colour) = output::task_sign(task.state);
    let state = palette.paint(colour, format!("{sign} {}", task.state.name()));
    format!("{} {state}\n{}", task.task, wrap(&task.because, "  "))
}

/// Wraps a text into lines of at most `WIDTH`, each after `indent`. Longer words are not broken.
fn wrap(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line from the start");
        let (empty, length) = (line.len() == indent.len(), line.chars().count() + 1 + word.chars().count());
        if !empty && length > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if empty { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use model::{Instant, RunId, RunState, TaskState};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn explanation(more: usize) -> Explanation {
        let task = TaskExplanation {
            task: "load".into(),
            state: TaskState::Pending,
            because: "It waits for `extract` (running).".into(),
            since: Instant::from_timestamp(1_800_000_000, 0).unwrap(),
            until: None,
            details: json!({}),
        };
        let (run, summary) = (RunId(Uuid::nil()), "It waits for `extract`.".into());
        Explanation { run, state: RunState::Running, summary, tasks: vec![task], more }
    }

    #[test]
    fn each_task_is_a_paragraph_below_the_summary() {
        let text = text(&explanation(0), Palette { on: false });
        assert_eq!(text, "It waits for `extract`.\n\nload ○ pending\n  It waits for `extract` (running).");
    }

    #[test]
    fn omitted_tasks_are_counted() {
        let text = text(&explanation(7), Palette { on: false });
        assert!(
            text.ends_with(&format!("\n\nand 7 more; explain one with: ebb explain {} TASK", Uuid::nil()))
        );
    }

    #[test]
    fn long_lines_are_wrapped_and_long_words_are_not_broken() {
        let text = format!("{} {}", "word ".repeat(30), "x".repeat(120));
        let lines: Vec<String> = wrap(&text, "  ").lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.starts_with("  ")) && lines[0].len() <= WIDTH);
        assert_eq!(lines[2].trim(), "x".repeat(120));
    }
}
