//! Queues: what files declare, and which of them tasks may name.

use ebbflow_language::{Compilation, FileKind, SourceFile, compile};

fn with(queue: (&str, &str), task: &str) -> Compilation {
    let file = |folder: &str, kind, name: &str, text: String| SourceFile {
        path: format!("{folder}/{name}.yaml"),
        kind,
        text,
    };
    compile(&[
        file(
            "graphs",
            FileKind::Workflow,
            "a",
            format!("name: a\ntasks:\n  - {{name: t, type: noop{task}}}\n"),
        ),
        file("queues", FileKind::Queue, queue.0, queue.1.to_owned()),
    ])
}

fn said(compilation: &Compilation) -> Vec<String> {
    compilation.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn workers_lease_the_tasks_of_a_pool_and_of_no_other_queue() {
    for (kind, task, leased) in [
        ("pool", ", queue: own", true),
        ("service", ", queue: own", false),
        ("pool", ", queue: heavy", false),
        ("pool", "", false),
    ] {
        let compilation = with(("own", &format!("name: own\nkind: {kind}\n")), task);
        assert_eq!(said(&compilation), [""; 0], "{kind}{task}");
        assert_eq!(compilation.definitions[0].workflow.tasks[0].leased, leased, "{kind}{task}");
    }
    let heavy = with(("heavy", "name: heavy\nkind: pool\n"), ", queue: heavy");
    assert!(heavy.definitions[0].workflow.tasks[0].leased, "where no list fixes it, a file decides");
}

#[test]
fn the_file_of_a_queue_is_checked_like_any_other() {
    for (text, expected) in [
        ("name: own\n", "queues/own.yaml:1:1: the field `kind` is missing"),
        ("name: own\nkind: pol\n", "queues/own.yaml:2:7: kind: "),
        ("name: other\nkind: pool\n", "the name `other` is not the file's name, `own`"),
        ("name: own\nkind: pool\nslots: 3\n", "unknown field `slots`"),
    ] {
        let found = said(&with(("own", text), ""));
        assert!(found.iter().any(|line| line.contains(expected)), "{text}: {found:?}");
    }
    let used = said(&with(("own", "name: own\nkind: pol\n"), ", queue: own"));
    assert!(used.iter().any(|line| line.contains("the queue `own` cannot be used")), "{used:?}");
    let light = said(&with(("light", "name: light\nkind: pool\n"), ""));
    assert_eq!(light.len(), 1, "callbacks run there: {light:?}");
    assert!(light[0].contains("the installation's queue `light` is of the kind `service`"), "{light:?}");
}
