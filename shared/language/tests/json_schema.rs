//! The published JSON Schemas against the language itself.
//!
//! After a change of the language, rewrite the files and read what changed:
//! `INSTA_UPDATE=always cargo test -p ebbflow-language --test json_schema`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod editing;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ebbflow_language::{FileKind, Schema, SourceFile, compile};
use editing::{Edit, edits};
use jsonschema::Validator;
use serde_json::{Value, json};
use shape::{NOT_BY_SHAPE, OF_SHAPE, OF_SHAPE_OF_PARTS};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validator(schema: Schema) -> Validator {
    jsonschema::draft202012::new(&schema.to_json()).unwrap()
}

/// The files of a folder, by their names without extension.
fn texts(folder: &str) -> BTreeMap<String, String> {
    let paths = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.map(|path| (stem(&path), fs::read_to_string(path).unwrap())).collect()
}

/// What an editor makes of a text, if it is YAML.
fn parsed(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true, legacy_octal_numbers: false };
    serde_saphyr::from_str_with_options(text, options).ok()
}

/// What the language says of a document, beside the reusable tasks and templates that it builds on.
fn problems(kind: FileKind, document: &Value) -> Vec<String> {
    static LIBRARY: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
        let files = |folder: &str, kind| {
            let texts = texts(&format!("shared/language/tests/golden/{folder}")).into_iter();
            texts.map(move |(path, text)| SourceFile { path, kind, text })
        };
        let shared = files("tasks", FileKind::Task).chain(files("templates", FileKind::Template));
        shared.chain(files("queues", FileKind::Queue)).collect()
    });
    let mut files = vec![SourceFile { path: "edited".to_owned(), kind, text: document.to_string() }];
    // The one builds on the other.
    let extended = if files[0].text.contains("nightly") { &["ingest", "nightly"][..] } else { &["ingest"] };
    let is_used = |file: &&SourceFile| match file.kind {
        FileKind::Task => kind != FileKind::Task && files[0].text.contains(&file.path),
        FileKind::Queue => true,
        _ => is_heir(document) && document["name"] != file.path && extended.contains(&file.path.as_str()),
    };
    let used: Vec<SourceFile> = LIBRARY.iter().filter(is_used).cloned().collect();
    files.extend(used);
    if kind == FileKind::Template {
        // Much of it shows only in the workflow made of it.
        let extends = json!({"template": document["name"], "parameters": {"source": "orders"}});
        let text = json!({"name": "heir", "extends": extends}).to_string();
        files.push(SourceFile { path: "heir".to_owned(), kind: FileKind::Workflow, text });
    }
    let found = compile(&files).diagnostics.into_iter();
    found
        .map(|found| format!("{}: {} ({})", found.path, found.message, found.hint.unwrap_or_default()))
        .collect()
}

#[test]
fn the_published_files_are_those_of_the_language() {
    for schema in Schema::ALL {
        let name = schema.name();
        let path = root().join(format!("workflows/schemas/{name}.json"));
        let schema = schema.to_json();
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
        }
        let published: Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
        let command = "INSTA_UPDATE=always cargo test -p ebbflow-language --test json_schema";
        assert!(published == schema, "workflows/schemas/{name}.json is old; update it with: {command}");
    }
}

#[test]
fn a_schema_is_one_by_its_own_rules_and_names_itself() {
    for schema in Schema::ALL {
        let name = schema.name();
        let schema = schema.to_json();
        assert!(jsonschema::draft202012::meta::is_valid(&schema), "{name}");
        assert_eq!(schema["$id"], format!("https://ebbflow.dev/schemas/{name}.json"));
    }
}

#[test]
fn every_field_is_explained() {
    for schema in Schema::ALL {
        let mut silent = Vec::new();
        unexplained(&schema.to_json(), schema.name(), &mut silent);
        assert_eq!(silent, [""; 0]);
    }
}

/// The fields without a description; conditions only refer to fields that have one.
fn unexplained(schema: &Value, path: &str, silent: &mut Vec<String>) {
    let Some(parts) = schema.as_object() else {
        let items = schema.as_array().into_iter().flatten();
        return items.for_each(|item| unexplained(item, path, silent));
    };
    for (key, part) in
        parts.iter().filter(|(key, _)| !["if", "then", "else", "dependentSchemas"].contains(&key.as_str()))
    {
        let fields = part.as_object().filter(|_| key == "properties").into_iter().flatten();
        silent.extend(
            fields
                .filter(|(_, field)| field["description"].is_null())
                .map(|(name, _)| format!("{path}.{name}")),
        );
        unexplained(part, &format!("{path}.{key}"), silent);
    }
}

#[test]
fn every_valid_file_and_every_example_is_accepted() {
    let folders = [
        ("shared/language/tests/golden/valid", Schema::Workflow),
        ("shared/language/tests/golden/tasks", Schema::Task),
        ("shared/language/tests/golden/templates", Schema::Template),
        ("shared/language/tests/golden/queues", Schema::Queue),
        ("workflows/graphs", Schema::Workflow),
        ("workflows/tasks", Schema::Task),
        ("workflows/templates", Schema::Template),
        ("workflows/tests", Schema::Test),
        ("workflows/types", Schema::Type),
        ("workflows/queues", Schema::Queue),
    ];
    for (folder, schema) in folders {
        let validator = validator(schema);
        for (name, text) in texts(folder) {
            let document = parsed(&text).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&document)
                .map(|error| format!("{} {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{folder}/{name}.yaml");
        }
    }
}

#[test]
fn every_file_of_the_wrong_shape_is_refused() {
    let passed = accepted(Schema::Workflow, "shared/language/tests/golden/invalid");
    let listed: BTreeSet<&str> = NOT_BY_SHAPE.iter().flat_map(|(_, names)| *names).copied().collect();
    assert_eq!(passed.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn every_template_of_the_wrong_shape_is_refused() {
    let passed = accepted(Schema::Template, "shared/language/tests/golden/invalid-templates");
    let listed = ["extends", "extends-unknown", "itself", "no-parameters", "references"];
    assert_eq!(passed.iter().map(String::as_str).collect::<Vec<_>>(), listed);
}

/// The files of a folder in which an editor finds nothing.
fn accepted(schema: Schema, folder: &str) -> BTreeSet<String> {
    let validator = validator(schema);
    let passes = |text: &String| parsed(text).is_none_or(|document| validator.is_valid(&document));
    texts(folder).into_iter().filter(|(_, text)| passes(text)).map(|(name, _)| name).collect()
}

#[test]
fn after_any_edit_of_a_workflow_both_agree_on_its_shape() {
    let (_, wholes) = documents("valid").into_iter().partition(is_heir);
    agree(Schema::Workflow, FileKind::Workflow, wholes);
}

#[test]
fn after_any_edit_of_a_workflow_that_extends_a_template_both_agree_on_its_shape() {
    let (heirs, _) = documents("valid").into_iter().partition(is_heir);
    agree(Schema::Workflow, FileKind::Workflow, heirs);
}

#[test]
fn after_any_edit_of_a_reusable_task_both_agree_on_its_shape() {
    agree(Schema::Task, FileKind::Task, documents("tasks"));
}

#[test]
fn after_any_edit_of_a_template_both_agree_on_its_shape() {
    agree(Schema::Template, FileKind::Template, documents("templates"));
}

/// The golden files of a folder.
fn documents(folder: &str) -> Vec<Value> {
    let texts = texts(&format!("shared/language/tests/golden/{folder}"));
    texts.values().map(|text| parsed(text).unwrap()).collect()
}

fn is_heir(document: &Value) -> bool {
    document.get("extends").is_some()
}

/// Edits every place of every valid file once. What the schema refuses, the language refuses; what the language
/// refuses for its shape, the schema refuses.
fn agree(schema: Schema, kind: FileKind, documents: Vec<Value>) {
    let validator = validator(schema);
    let mut names = BTreeSet::new();
    field_names(&schema.to_json(), &mut names);
    let mut seen = BTreeSet::new();
    let mut disagreements = Vec::new();
    for document in documents.into_iter().flat_map(slices) {
        // It was valid, but now some tasks are missing, and the order in which one input may build on another.
        let before = problems(kind, &document);
        let is_part = is_heir(&document) || kind == FileKind::Template;
        let of_shape = if is_part { &OF_SHAPE_OF_PARTS[..] } else { &OF_SHAPE };
        for edit in edits(&document, &mut seen) {
            let known = known_here(kind, &document, &edit);
            let others = with_known_fields(&known, &document, &edit);
            let more = with_schema_fields(&validator, names.difference(&known), &document, &edit);
            for edit in others.chain(more).chain([edit.clone()]) {
                let edited = edit.apply(&document);
                let mut problems = problems(kind, &edited);
                problems.retain(|problem| !before.contains(problem));
                let fits = validator.is_valid(&edited);
                if !fits && problems.is_empty()
                    || fits && problems.iter().any(|problem| is_of_shape(problem, of_shape))
                {
                    disagreements.push(format!("{edit:?}: {problems:?}"));
                }
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// A workflow with one of its tasks, for each of them, and all else only once: what is edited is small, and soon
/// compiled.
fn slices(document: Value) -> Vec<Value> {
    let Some(tasks) = document["tasks"].as_array() else { return vec![document] };
    let with = |(index, task): (usize, &Value)| {
        let mut slice = document.clone();
        slice["tasks"] = json!([task]);
        if index > 0 {
            let kept = ["name", "tasks", "inputs", "extends", "parameters"];
            slice.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
        }
        slice
    };
    tasks.iter().enumerate().map(with).collect()
}

fn is_of_shape(problem: &str, of_shape: &[&str]) -> bool {
    of_shape.iter().any(|words| problem.contains(words))
}

/// Where an edit puts an unknown field: every field that the language offers instead.
fn with_known_fields(known: &BTreeSet<String>, document: &Value, edit: &Edit) -> impl Iterator<Item = Edit> {
    known.iter().flat_map(|name| edit.renamed(document, name))
}

/// Where an edit puts an unknown field: every field that the schema accepts instead, if not any.
fn with_schema_fields<'n>(
    validator: &Validator,
    names: impl Iterator<Item = &'n String>,
    document: &Value,
    edit: &Edit,
) -> impl Iterator<Item = Edit> {
    let is_closed = edit.is_unknown() && !validator.is_valid(&edit.apply(document));
    let renamed = names.filter(move |_| is_closed).flat_map(|name| edit.renamed(document, name));
    renamed.filter(|edit| validator.is_valid(&edit.apply(document)))
}

/// The fields that the language offers in place of an unknown one.
fn known_here(kind: FileKind, document: &Value, edit: &Edit) -> BTreeSet<String> {
    if !edit.is_unknown() {
        return BTreeSet::new();
    }
    let problems = problems(kind, &edit.apply(document));
    let lists = problems.iter().filter_map(|problem| problem.split_once("(known here: "));
    let names = lists.flat_map(|(_, list)| list.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

fn field_names(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| field_names(item, names)),
        Value::Object(parts) => {
            names.extend(
                parts
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|fields| fields.keys().cloned()),
            );
            parts.values().for_each(|part| field_names(part, names));
        }
        _ => {}
    }
}

#[test]
fn names_are_as_long_and_as_odd_as_the_language_allows() {
    let validator = validator(Schema::Workflow);
    let long = ["a".repeat(100), "a".repeat(101)];
    let odd = ["a", "_", "__", "a_", "_a", "a__b", "a_b_c", "-", "A", "a b", "ä", "a.b", "a\n", "", "9"];
    for name in odd.into_iter().chain(long.iter().map(String::as_str)) {
        for document in [
            json!({"name": "a", "tasks": [{"name": name, "type": "noop"}]}),
            json!({"name": name, "tasks": [{"name": "a", "type": "noop"}]}),
            json!({"name": "a", "tasks": [{"name": "a", "type": "noop", "pool": name}]}),
            json!({"name": "a", "inputs": {name: {"type": "string"}}, "tasks": [{"name": "a", "type": "noop"}]}),
            json!({"name": "a", "tasks": [{"name": "a", "type": "wait_for_signal", "config": {"signal": name}}]}),
        ] {
            let problems = problems(FileKind::Workflow, &document);
            assert_eq!(validator.is_valid(&document), problems.is_empty(), "{document} {problems:?}");
        }
    }
}
