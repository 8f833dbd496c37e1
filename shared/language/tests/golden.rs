//! Every file in `golden/` against what a person is reported about it.
//!
//! `invalid/` holds one mistake or a few per file, `valid/` whole workflows, `tasks/`, `templates/` and `queues/` the
//! reusable tasks, workflow templates and queues that both may use, `invalid-templates/` templates with mistakes. After a change, accept the snapshots and read them as a user would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use ebbflow_language::{FileKind, SourceFile, compile};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn sources(name: &str, kind: FileKind, shown: &str) -> Vec<SourceFile> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let file = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        SourceFile {
            path: format!("workflows/{shown}/{name}"),
            kind,
            text: fs::read_to_string(path).unwrap(),
        }
    };
    paths.iter().map(file).collect()
}

fn each(name: &str, kind: FileKind, shown: &str, mut check: impl FnMut(&str, &[SourceFile])) {
    let mut library = sources("tasks", FileKind::Task, "tasks");
    library.extend(sources("templates", FileKind::Template, "templates"));
    library.extend(sources("queues", FileKind::Queue, "queues"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for file in sources(name, kind, shown) {
            let stem = Path::new(&file.path).file_stem().unwrap().to_str().unwrap().to_owned();
            let files: Vec<SourceFile> = library.iter().cloned().chain([file]).collect();
            check(&format!("{name}-{stem}"), &files);
        }
    });
}

fn explain(name: &str, files: &[SourceFile]) {
    let compilation = compile(files);
    assert!(compilation.definitions.is_empty(), "{name} must not compile");
    let lines: Vec<String> = compilation.diagnostics.iter().map(ToString::to_string).collect();
    assert!(!lines.is_empty(), "{name} must be explained");
    insta::assert_snapshot!(name, lines.join("\n"));
}

#[test]
fn every_mistake_is_explained() {
    each("invalid", FileKind::Workflow, "graphs", explain);
}

#[test]
fn every_mistake_in_a_template_is_explained() {
    each("invalid-templates", FileKind::Template, "templates", explain);
}

#[test]
fn every_valid_file_becomes_the_workflow_it_describes() {
    each("valid", FileKind::Workflow, "graphs", |name, files| {
        let compilation = compile(files);
        assert_eq!(compilation.diagnostics, [], "{name} must compile");
        let definition = &compilation.definitions[0];
        let workflow = serde_json::to_string_pretty(&definition.workflow).unwrap();
        insta::assert_snapshot!(name, format!("{}\n{workflow}", definition.hash));
    });
}
