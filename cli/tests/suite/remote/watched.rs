//! What people see of a run that goes on: how far its tasks have come, and which attempt it is of how many.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use super::{Place, task};
use crate::project::Dev;

/// `ebb trigger --watch`, whose standard output is a pipe.
struct Watched {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watched {
    fn trigger(place: &Place, workflow: &str) -> Self {
        let folder = format!("folder={}", place.folder.path().display());
        let mut command = place.project.command(&["trigger", workflow, "--watch", "--input", &folder]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Reads up to a line of a task that has these words.
    fn line(&mut self, task: &str, words: &str) -> String {
        let mut seen = Vec::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if line.split_whitespace().nth(1) == Some(task) && line.contains(words) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line of `{task}` has `{words}`: {seen:#?}")
    }

    /// Reads the rest. Returns the exit code.
    fn ended(mut self) -> Option<i32> {
        self.lines.by_ref().for_each(drop);
        self.process.wait().unwrap().code()
    }
}

/// Reports how far it has come, and waits.
const REPORTING: &str = r#"{env: {FOLDER: "{{ inputs.folder }}"}, command: 'echo "{\"progress\": 0.42}" >> "$EBB_MESSAGES"; read -r _ < "$FOLDER/pipe"'}"#;

/// More such tasks than are read in one poll.
const TASKS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

#[test]
fn watching_shows_how_far_every_task_and_child_has_come() {
    let mut text = "name: wait\ninputs: {folder: {type: string}}\ntasks:\n".to_owned();
    for task in TASKS {
        text += &format!("  - {{name: {task}, type: bash, queue: remote, config: {REPORTING}}}\n");
    }
    let child = format!("{{type: bash, queue: remote, config: {REPORTING}}}");
    text += &format!("  - {{name: each, type: fan_out, for_each: '[1]', task: {child}}}\n");
    let place = Place::new("wait", &text);
    let _dev = place.project.dev();
    let _worker = place.worker("w", &["--slots", "8", "--grace", "0"]);
    let mut watched = Watched::trigger(&place, "wait");
    let (mut missing, mut seen) = ([&TASKS[..], &["each__0"]].concat(), Vec::new());
    while !missing.is_empty() {
        let line = watched.lines.next().unwrap_or_else(|| panic!("{missing:?} missing: {seen:#?}")).unwrap();
        missing.retain(|task| !line.ends_with(&format!(" {task:<4}  ▶ running  42 %")));
        seen.push(line);
    }
    place.project.ask(&["run", "cancel", &place.project.latest_run()]);
    assert_eq!(watched.ended(), Some(1), "the run was cancelled: {seen:#?}");
}

/// Fails at first, and then waits.
const RETRIED: &str = r#"
name: wait
inputs: {folder: {type: string}}
tasks:
  - name: wait
    type: bash
    queue: remote
    retry_policy: {max_retries: 3, initial_delay_seconds: 0.1}
    config:
      env: {FOLDER: "{{ inputs.folder }}"}
      command: '[ -e "$FOLDER/failed" ] || { touch "$FOLDER/failed"; exit 1; }; read -r _ < "$FOLDER/pipe"'
"#;

async fn console(dev: &Dev, path: &str) -> String {
    reqwest::get(format!("{}{path}", dev.url)).await.unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retried_task_has_the_same_attempt_of_as_many_wherever_one_looks() {
    let place = Place::new("wait", RETRIED);
    let dev = place.project.dev();
    let _worker = place.worker("w", &[]);
    let mut watched = Watched::trigger(&place, "wait");
    let line = tokio::task::block_in_place(|| watched.line("wait", "(attempt 2 of 4)"));
    assert!(line.ends_with(" (attempt 2 of 4)"), "{line}");
    let run = place.project.latest_run();
    super::runs(&dev, &run, 2).await;
    let api = task(&dev, &run, "wait").await;
    assert_eq!((&api["attempt"], &api["max_attempts"]), (&2.into(), &4.into()), "{api}");
    let shown = place.project.ask(&["run", "show", &run]);
    assert!(shown.contains(" 2/4 "), "{shown}");
    let explained = place.project.ask(&["explain", &run]);
    assert!(explained.contains("attempt 2 of 4"), "{explained}");
    let page = console(&dev, &format!("/runs/{run}")).await;
    assert!(page.contains("<td class=\"num wide\">2 of 4</td>"), "{page}");
    let page = console(&dev, &format!("/runs/{run}/tasks/wait")).await;
    assert!(page.contains("attempt <b>2 of 4</b>"), "{page}");

    tokio::task::block_in_place(|| place.go("done"));
    assert_eq!(tokio::task::block_in_place(|| watched.ended()), Some(0));
}
