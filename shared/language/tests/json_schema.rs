//! The published JSON Schemas against the language itself.
//!
//! After a change of the language, write the files anew and read what changed:
//! `INSTA_UPDATE=always cargo test -p ebbflow-language --test json_schema`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod editing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ebbflow_language::{FileKind, Schema, SourceFile, compile};
use editing::{Edit, edits};
use jsonschema::Validator;
use serde_json::{Value, json};

/// Files whose fault is not their shape, by what it is instead. What else the language refuses, an editor underlines.
const NOT_BY_SHAPE: [(&str, &[&str]); 6] = [
    (
        "no YAML, which editors say themselves",
        &[
            "duplicate-key",
            "schedule-unquoted-alias",
            "schedule-unquoted-star",
            "yaml-syntax",
            "yaml-tab",
            "yaml-unclosed",
        ],
    ),
    ("the name of the file", &["other-name"]),
    (
        "tasks beside each other",
        &[
            "cycle",
            "duplicate-tasks",
            "fan-in-without-fan-out",
            "self-dependency",
            "switch-cycle",
            "switch-cycle-next",
            "two-cycles",
        ],
    ),
    ("cases beside each other", &["switch-two-defaults", "switch-unreachable"]),
    ("the meaning of a cron pattern", &["cron-alias", "cron-fields", "cron-seconds"]),
    (
        "the inside of templates and expressions",
        &[
            "callbacks-names",
            "concurrency-names",
            "input-template",
            "item-elsewhere",
            "reference-names",
            "secrets-elsewhere",
            "secrets-names",
            "switch-conditions",
            "switch-outputs",
            "template-filters",
            "template-in-program",
            "template-names",
            "template-outputs",
            "template-syntax",
            "when-braces",
            "when-names",
            "when-outputs",
            "when-syntax",
        ],
    ),
];

/// How the language says that a shape is wrong.
const OF_SHAPE: [&str; 12] = [
    "there is no field",
    ": expected ",
    "must be a mapping",
    "` is missing",
    "has no setting",
    "needs the setting",
    "needs exactly one of",
    "is not one of the values",
    "there is no task type",
    "only a task of the type",
    "is no valid name",
    "needs at least one",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(kind: FileKind) -> Schema {
    match kind {
        FileKind::Workflow => Schema::Workflow,
        _ => Schema::Task,
    }
}

fn validator(kind: FileKind) -> Validator {
    jsonschema::draft202012::new(&schema(kind).to_json()).unwrap()
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

/// What the language says of a document, beside the reusable tasks that it names.
fn problems(kind: FileKind, document: &Value) -> Vec<String> {
    static LIBRARY: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
        let files = texts("shared/language/tests/golden/tasks").into_iter();
        files.map(|(path, text)| SourceFile { path, kind: FileKind::Task, text }).collect()
    });
    let edited = SourceFile { path: "edited".to_owned(), kind, text: document.to_string() };
    let library = LIBRARY
        .iter()
        .filter(|task| kind == FileKind::Workflow && edited.text.contains(&task.path))
        .cloned()
        .collect::<Vec<_>>();
    let found = compile(&[library, vec![edited]].concat()).diagnostics.into_iter();
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
        assert!(published == schema, "workflows/schemas/{name}.json is old; write it anew: {command}");
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
        parts.iter().filter(|(key, _)| !["if", "then", "dependentSchemas"].contains(&key.as_str()))
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
fn every_sound_file_and_every_example_is_accepted() {
    let folders = [
        ("shared/language/tests/golden/valid", FileKind::Workflow),
        ("shared/language/tests/golden/tasks", FileKind::Task),
        ("workflows/graphs", FileKind::Workflow),
        ("workflows/tasks", FileKind::Task),
    ];
    for (folder, kind) in folders {
        let validator = validator(kind);
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
    let validator = validator(FileKind::Workflow);
    let passes = |text: &String| parsed(text).is_none_or(|document| validator.is_valid(&document));
    let files = texts("shared/language/tests/golden/invalid");
    let passed: BTreeSet<&str> =
        files.iter().filter(|(_, text)| passes(text)).map(|(name, _)| name.as_str()).collect();
    let listed = NOT_BY_SHAPE.iter().flat_map(|(_, names)| *names).copied().collect();
    assert_eq!(passed, listed);
}

#[test]
fn whatever_one_edit_makes_of_a_sound_workflow_both_agree_on_its_shape() {
    agree(FileKind::Workflow, "shared/language/tests/golden/valid");
}

#[test]
fn whatever_one_edit_makes_of_a_reusable_task_both_agree_on_its_shape() {
    agree(FileKind::Task, "shared/language/tests/golden/tasks");
}

/// Edits every place of every sound file once. What the schema refuses, the language refuses; what the language
/// refuses for its shape, the schema refuses.
fn agree(kind: FileKind, folder: &str) {
    let validator = validator(kind);
    let mut names = BTreeSet::new();
    field_names(&schema(kind).to_json(), &mut names);
    let mut seen = BTreeSet::new();
    let mut disagreements = Vec::new();
    for document in texts(folder).values().flat_map(|text| slices(parsed(text).unwrap())) {
        // It was sound, but now some tasks are missing, and the order in which one input may build on another.
        let before = problems(kind, &document);
        for edit in edits(&document, &mut seen) {
            let mut others = with_known_fields(kind, &document, &edit);
            others.extend(with_schema_fields(&validator, &names, &document, &edit));
            for edit in others.into_iter().chain([edit]) {
                let edited = edit.apply(&document);
                let mut problems = problems(kind, &edited);
                problems.retain(|problem| !before.contains(problem));
                let fits = validator.is_valid(&edited);
                if !fits && problems.is_empty() || fits && problems.iter().any(|problem| is_of_shape(problem))
                {
                    disagreements.push(format!("{edit:?}: {problems:?}"));
                }
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// A workflow with one of its tasks, for each of them: what is edited is small, and soon compiled.
fn slices(document: Value) -> Vec<Value> {
    let Some(tasks) = document["tasks"].as_array() else { return vec![document] };
    let with = |task: &Value| {
        let mut slice = document.clone();
        slice["tasks"] = json!([task]);
        slice
    };
    tasks.iter().map(with).collect()
}

fn is_of_shape(problem: &str) -> bool {
    OF_SHAPE.iter().any(|words| problem.contains(words))
}

/// Where an edit puts a strange field: every field that the language offers instead.
fn with_known_fields(kind: FileKind, document: &Value, edit: &Edit) -> Vec<Edit> {
    if !edit.is_strange() {
        return Vec::new();
    }
    let known = known_here(&problems(kind, &edit.apply(document)));
    known.iter().flat_map(|name| edit.renamed(document, name)).collect()
}

/// Where an edit puts a strange field: every field that the schema accepts instead.
fn with_schema_fields(
    validator: &Validator,
    names: &BTreeSet<String>,
    document: &Value,
    edit: &Edit,
) -> Vec<Edit> {
    let renamed = names.iter().filter(|_| edit.is_strange()).flat_map(|name| edit.renamed(document, name));
    renamed.filter(|edit| validator.is_valid(&edit.apply(document))).collect()
}

/// The fields that the language offers in place of a strange one.
fn known_here(problems: &[String]) -> Vec<String> {
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
    let validator = validator(FileKind::Workflow);
    let long = ["a".repeat(100), "a".repeat(101)];
    let odd = ["a", "_", "__", "a_", "_a", "a__b", "a_b_c", "-", "A", "a b", "ä", "a.b", "a\n", "", "9"];
    for name in odd.into_iter().chain(long.iter().map(String::as_str)) {
        for document in [
            json!({"name": "a", "tasks": [{"name": name, "type": "noop"}]}),
            json!({"name": name, "tasks": [{"name": "a", "type": "noop"}]}),
            json!({"name": "a", "tasks": [{"name": "a", "type": "noop", "queue": name}]}),
            json!({"name": "a", "inputs": {name: {"type": "string"}}, "tasks": [{"name": "a", "type": "noop"}]}),
            json!({"name": "a", "tasks": [{"name": "a", "type": "wait_for_signal", "config": {"signal": name}}]}),
        ] {
            let problems = problems(FileKind::Workflow, &document);
            assert_eq!(validator.is_valid(&document), problems.is_empty(), "{document} {problems:?}");
        }
    }
}
