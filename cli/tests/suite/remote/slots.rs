//! The slots of a worker.

use std::collections::BTreeSet;

use testkit::eventually_blocking;

use super::Place;

const TASKS: usize = 6;
const SLOTS: usize = 2;

/// Each task counts those that run with it, and runs until it reads a word from its own pipe.
fn crowd() -> String {
    let task = |number: usize| {
        format!(
            "  - name: t{number}
    type: bash
    queue: remote
    config:
      env: {{FOLDER: '{{{{ inputs.folder }}}}'}}
      command: |
        touch \"$FOLDER/run-$EBB_TASK\"
        ls \"$FOLDER\" | grep -c ^run- > $EBB_OUTPUT
        read -r _ < \"$FOLDER/pipe-$EBB_TASK\"
        rm \"$FOLDER/run-$EBB_TASK\"
"
        )
    };
    let tasks: String = (0..TASKS).map(task).collect();
    format!("name: crowd\ninputs: {{folder: {{type: string}}}}\ntasks:\n{tasks}")
}

/// The tasks that have begun and not ended.
fn running(place: &Place) -> BTreeSet<String> {
    let files = std::fs::read_dir(place.folder.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_prefix("run-").map(str::to_owned)).collect()
}

#[test]
fn a_worker_never_runs_more_tasks_than_it_has_slots() {
    let place = Place::new("crowd", &crowd());
    (0..TASKS).for_each(|number| place.make_pipe(&format!("pipe-t{number}")));
    let _dev = place.project.dev();
    let worker = place.worker("w", &["--slots", &SLOTS.to_string()]);
    let run = place.trigger("crowd");
    let mut let_go = BTreeSet::new();
    while let_go.len() < TASKS {
        // As many as possible run before one of them may end.
        let expected = SLOTS.min(TASKS - let_go.len());
        let next = eventually_blocking("all slots are in use", || {
            let waiting: BTreeSet<String> = &running(&place) - &let_go;
            (waiting.len() >= expected).then(|| waiting.into_iter().next()).flatten()
        });
        let pipe = place.folder.path().join(format!("pipe-{next}"));
        std::fs::write(pipe, "go\n").unwrap();
        let_go.insert(next);
    }
    place.project.ask(&["run", "watch", &run]);
    let shown = place.project.ask_json(&["run", "show", &run]);
    let counts: Vec<u64> =
        shown["tasks"].as_array().unwrap().iter().filter_map(|task| task["output"].as_u64()).collect();
    assert_eq!(counts.len(), TASKS, "{}", worker.log());
    assert!(counts.iter().all(|count| *count <= SLOTS as u64), "{counts:?}");
}
