//! Task types that users declare: in workflows, in schemas for editors, and at run time.

use ebbflow_language::{Compilation, FileKind, Schema, SourceFile, compile};
use model::{TaskKind, TypeName};
use serde_json::{Value, json};

const TYPE: &str = "\
name: raster.validate
description: Checks a raster.
icon: R
queue: gis
timeout_seconds: 600
retry_policy: {max_retries: 2}
config:
  properties:
    source: {type: string, pattern: \"^gs://\"}
    bands: {type: integer, minimum: 1}
    mode: {enum: [fast, exact]}
  required: [source]
output:
  type: object
  properties: {width: {type: integer}}
  required: [width]
";

fn file(folder: &str, kind: FileKind, name: &str, text: &str) -> SourceFile {
    SourceFile { path: format!("{folder}/{name}.yaml"), kind, text: text.to_owned() }
}

/// Compiles files beside those of the queues that they name.
fn with_queues(files: &[SourceFile]) -> Compilation {
    let queue = |name: &str| file("queues", FileKind::Queue, name, &format!("name: {name}\nkind: pool\n"));
    compile(&[files, &[queue("gis"), queue("gpu")]].concat())
}

fn with_type(workflow: &str) -> Compilation {
    let workflow = file("graphs", FileKind::Workflow, "a", workflow);
    with_queues(&[workflow, file("types", FileKind::Type, "raster.validate", TYPE)])
}

fn of_type(text: &str) -> Vec<String> {
    said(&with_queues(&[file("types", FileKind::Type, "a.b", text)]))
}

fn said(compilation: &Compilation) -> Vec<String> {
    compilation.diagnostics.iter().map(ToString::to_string).collect()
}

fn task(rest: &str) -> Vec<String> {
    said(&with_type(&format!("name: a\ntasks:\n  - name: check\n    type: raster.validate\n{rest}")))
}

#[test]
fn a_task_inherits_the_settings_of_its_type_and_the_workflow_keeps_the_type() {
    let workflow = "\
name: a
defaults: {queue: light, timeout_seconds: 5}
tasks:
  - {name: one, type: raster.validate, config: {source: 'gs://x'}}
  - {name: two, type: raster.validate, config: {source: 'gs://x'}, queue: gpu, retry_policy: {backoff: constant}}
  - {name: all, type: fan_out, for_each: '[1]', task: {type: raster.validate, config: {source: '{{ item }}'}}}
";
    let compilation = with_type(workflow);
    assert_eq!(said(&compilation), [""; 0]);
    let workflow = &compilation.definitions[0].workflow;
    let name = TypeName::new("raster.validate").unwrap();
    let [one, two, all] = &workflow.tasks[..] else { panic!("there are three tasks") };
    assert_eq!(one.kind, TaskKind::Custom(name.clone()));
    assert_eq!((one.queue.as_str(), one.timeout_seconds, one.retry.max_retries), ("gis", 600, 2));
    assert_eq!((two.queue.as_str(), two.retry.max_retries), ("gpu", 2), "the policies are merged");
    assert_eq!(all.fan_out.as_ref().unwrap().task.queue, "gis");
    let kept = &workflow.types[&name];
    assert_eq!((kept.icon.as_deref(), kept.queue.as_deref()), (Some("R"), Some("gis")));
    assert_eq!(kept.config["additionalProperties"], false, "settings that are not declared are mistakes");
}

#[test]
fn mistakes_in_the_settings_are_reported_where_they_are() {
    assert_eq!(
        task("    config: {sorce: 'gs://x'}\n"),
        [
            "graphs/a.yaml:5:14: tasks[0].config.sorce: `raster.validate` has no setting `sorce` here (did you mean `source`?)"
        ]
    );
    assert_eq!(
        task("    config:\n      source: 5\n"),
        [
            "graphs/a.yaml:6:15: tasks[0].config.source: expected a text, found the number 5 (put it in quotes: \"5\")"
        ]
    );
    assert_eq!(
        task("    config: {source: 'gs://x', mode: fats}\n"),
        [
            "graphs/a.yaml:5:38: tasks[0].config.mode: expected one of `fast`, `exact`, found the text `fats` (did you mean `fast`?)"
        ]
    );
    assert_eq!(
        task(""),
        ["graphs/a.yaml:3:5: tasks[0]: `raster.validate` needs the setting `source` (add `source: …`)"]
    );
    assert_eq!(
        task("    config: {source: 'file://x'}\n"),
        [
            "graphs/a.yaml:5:22: tasks[0].config.source: `raster.validate`: the value does not match \"^gs://\""
        ],
        "what only a general validator knows has its position too"
    );
}

#[test]
fn what_a_template_decides_is_left_to_the_run() {
    assert_eq!(
        task("    config: {source: '{{ inputs.x }}', bands: '{{ inputs.x }}'}\n").len(),
        2,
        "no such input"
    );
    let input = "name: a\ninputs: {x: {type: string}}\ntasks:\n  - name: check\n    type: raster.validate\n";
    let given = format!("{input}    config: {{source: '{{{{ inputs.x }}}}', bands: '{{{{ inputs.x }}}}'}}\n");
    assert_eq!(said(&with_type(&given)), [""; 0]);
}

#[test]
fn an_unknown_type_is_refused_with_the_nearest_name() {
    let workflow =
        |kind: &str| format!("name: a\ntasks:\n  - name: check\n    type: {kind}\n    config: {{x: 1}}\n");
    assert_eq!(
        said(&with_type(&workflow("raster.valdate"))),
        [
            "graphs/a.yaml:4:11: tasks[0].type: unknown task type `raster.valdate` (did you mean `raster.validate`?)"
        ]
    );
    assert_eq!(
        said(&with_type(&workflow("video.cut"))),
        [
            "graphs/a.yaml:4:11: tasks[0].type: unknown task type `video.cut` (declare it in types/video.cut.yaml)"
        ]
    );
    let broken = compile(&[
        file("graphs", FileKind::Workflow, "a", &workflow("a.b")),
        file("types", FileKind::Type, "a.b", "name: a.b\nconfig: [1]\n"),
    ]);
    assert!(broken.definitions.is_empty());
    assert_eq!(
        said(&broken)[0],
        "graphs/a.yaml:4:11: tasks[0].type: the task type `a.b` cannot be used (fix the problems in its own file first)"
    );
}

#[test]
fn a_queue_that_nobody_leases_from_is_refused_with_the_fix() {
    let found = task("    queue: light\n    config: {source: 'gs://x'}\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("graphs/a.yaml:3:5: tasks[0]: "), "{found:?}");
    assert!(found[0].contains("`light`") && found[0].contains("kind: pool"), "{found:?}");
    let found = of_type("name: a.b\nqueue: light\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("types/a.b.yaml:2:8: queue: "), "{found:?}");
}

#[test]
fn the_file_of_a_type_is_checked_like_any_other() {
    assert!(of_type("name: a.b\nconfg: {}\n")[0].contains("unknown field `confg` (did you mean `config`?)"));
    assert!(of_type("name: ab\n")[0].contains("is not a valid name"), "built-in names have no dot");
    assert!(of_type("name: a.c\n")[0].contains("is not the file's name"));
    assert!(of_type("name: a.b\nicon: far too long\n")[0].starts_with("types/a.b.yaml:2:7: icon: "));
    let wrong = of_type("name: a.b\nconfig:\n  properties:\n    x: {type: strin}\n");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("types/a.b.yaml:4:") && wrong[0].contains("not valid"), "{wrong:?}");
    let twice = with_queues(&[
        file("types", FileKind::Type, "a.b", "name: a.b\n"),
        file("more", FileKind::Type, "a.b", "name: a.b\n"),
    ]);
    assert!(said(&twice)[0].contains("already defined in"), "{:?}", said(&twice));
}

#[test]
fn a_schema_cannot_take_the_server_down() {
    for (schema, words) in [
        ("{$ref: '#'}", "`$ref` cannot refer to"),
        ("{$ref: 'https://example.com/x.json'}", "`$ref` cannot refer to"),
        ("{$ref: '#/$defs/a', $defs: {a: {allOf: [{$ref: '#/$defs/a'}]}}}", "refers to itself"),
        (
            "{$ref: '#/$defs/a', $defs: {a: {$ref: '#/$defs/b'}, b: {anyOf: [{$ref: '#/$defs/a'}]}}}",
            "refers to itself",
        ),
        ("{$ref: '#/$defs/tiel', $defs: {tile: {}}}", "did you mean `tile`?"),
        ("{$id: 'https://example.com/'}", "`$id` is not a keyword"),
        ("{properties: {x: {$dynamicRef: '#x'}}}", "`$dynamicRef` is not a keyword"),
        ("{dependencies: {x: {$ref: '#'}}}", "`dependencies` is not a keyword"),
        ("{$schema: 'http://json-schema.org/draft-07/schema#'}", "`$schema` is not a keyword"),
        ("{requried: [x]}", "(did you mean `required`?)"),
        ("{properties: {x: {pattern: '(?=a)b'}}}", "not valid"),
        ("{properties: {x: {pattern: '[a-z]{5000}'}}}", "not valid"),
        ("{patternProperties: {'[a-z]{5000}': {}}}", "not valid"),
        ("{properties: {x: 5}}", "a JSON Schema is a mapping"),
    ] {
        for part in ["config", "output"] {
            let found = of_type(&format!("name: a.b\n{part}: {schema}\n"));
            assert!(found.iter().any(|found| found.contains(words)), "{part}: {schema} {found:?}");
        }
    }
    let definition = |number: usize| {
        let next = format!("{{$ref: '#/$defs/d{}'}}", number + 1);
        format!("d{number}: {{allOf: [{next}, {next}]}}")
    };
    let laughs: Vec<String> = (0..20).map(definition).chain(["d20: {}".to_owned()]).collect();
    let found =
        of_type(&format!("name: a.b\noutput: {{$ref: '#/$defs/d0', $defs: {{{}}}}}\n", laughs.join(", ")));
    assert!(found[0].contains("more than 2000 parts"), "{found:?}");
    for forward in [true, false] {
        let link = |number: usize| {
            let (from, to) = if forward { (number, number + 1) } else { (number + 1, number) };
            format!("d{from:05}: {{$ref: '#/$defs/d{to:05}'}}")
        };
        let end = format!("d{:05}: {{}}", if forward { 10_000 } else { 1 });
        let chain: Vec<String> = (1..10_000).map(link).chain([end]).collect();
        let found = of_type(&format!("name: a.b\noutput: {{$defs: {{{}}}}}\n", chain.join(", ")));
        assert!(
            found.iter().any(|found| found.contains("references lead from one to the next")),
            "{forward}"
        );
    }
}

fn listed(count: usize, entry: impl Fn(usize) -> String) -> String {
    (0..count).map(entry).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_patterns_of_a_schema_are_few() {
    let values = |count: usize| {
        format!(
            "{{properties: {{{}}}}}",
            listed(count, |number| format!("p{number}: {{pattern: a{number}}}"))
        )
    };
    let names = |count: usize| {
        format!("{{patternProperties: {{{}}}}}", listed(count, |number| format!("a{number}: {{}}")))
    };
    let both = |count: usize| format!("{{allOf: [{}, {}]}}", values(count - 50), names(50));
    let schemas: [&dyn Fn(usize) -> String; 3] = [&values, &names, &both];
    for schema in schemas {
        for part in ["config", "output"] {
            let said = |count: usize| of_type(&format!("name: a.b\n{part}: {}\n", schema(count)));
            assert_eq!(said(100), [""; 0], "{part}");
            let found = said(101);
            assert_eq!(found.len(), 1, "{part}: {found:?}");
            assert!(found[0].contains("the schema has more than 100 patterns"), "{part}: {found:?}");
        }
    }
    let shared = listed(200, |number| format!("p{number}: {{$ref: '#/$defs/host'}}"));
    let host = "{pattern: '^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$'}";
    let found =
        of_type(&format!("name: a.b\noutput: {{properties: {{{shared}}}, $defs: {{host: {host}}}}}\n"));
    assert_eq!(found, [""; 0], "a pattern counts once, however many references lead to it");
}

#[test]
fn a_changed_type_makes_another_version_of_the_workflows_that_use_it() {
    let workflow = "name: a\ntasks:\n  - {name: x, type: raster.validate, config: {source: 'gs://x'}}\n";
    let hash = |text: &str| {
        let files = [
            file("graphs", FileKind::Workflow, "a", workflow),
            file("types", FileKind::Type, "raster.validate", text),
            file("types", FileKind::Type, "a.b", "name: a.b\n"),
        ];
        let compilation = with_queues(&files);
        assert_eq!(said(&compilation), [""; 0]);
        assert_eq!(compilation.definitions[0].workflow.types.len(), 1, "only what it uses");
        compilation.definitions[0].hash.clone()
    };
    assert_eq!(hash(TYPE), hash(&format!("# A comment.\n{TYPE}")));
    for (old, new) in
        [("width", "height"), ("minimum: 1", "minimum: 2"), ("gis", "gpu"), ("icon: R", "icon: S")]
    {
        assert_ne!(hash(TYPE), hash(&TYPE.replace(old, new)), "{new}");
    }
}

#[test]
fn a_reusable_task_may_be_of_a_custom_type() {
    let reusable = "name: checked\ntype: raster.validate\nconfig: {bands: many}\n";
    let workflow = "name: a\ntasks:\n  - {task: checked, config: {source: 'gs://x'}}\n";
    let files = |reusable: &str| {
        [
            file("graphs", FileKind::Workflow, "a", workflow),
            file("tasks", FileKind::Task, "checked", reusable),
            file("types", FileKind::Type, "raster.validate", TYPE),
        ]
    };
    assert!(
        said(&with_queues(&files(reusable)))[1]
            .starts_with("tasks/checked.yaml:3:17: config.bands: expected a whole number")
    );
    let compilation = with_queues(&files(&reusable.replace("many", "3")));
    assert_eq!(said(&compilation), [""; 0]);
    let workflow = &compilation.definitions[0].workflow;
    assert_eq!(workflow.tasks[0].config, json!({"bands": 3, "source": "gs://x"}));
    assert_eq!((workflow.tasks[0].queue.as_str(), workflow.types.len()), ("gis", 1));
}

#[test]
fn editors_know_the_types_of_a_project() {
    let types = [file("types", FileKind::Type, "raster.validate", TYPE)];
    let schema = Schema::Workflow.for_project(&types).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let document = |kind: &str, config: Value| json!({"name": "a", "tasks": [{"name": "t", "type": kind, "config": config}]});
    let child = |config: Value| {
        let task = json!({"type": "raster.validate", "config": config});
        json!({"name": "a", "tasks": [{"name": "t", "type": "fan_out", "for_each": "[1]", "task": task}]})
    };
    for fits in [
        document("raster.validate", json!({"source": "gs://x", "bands": "{{ inputs.x }}"})),
        document("noop", json!({})),
        child(json!({"source": "{{ item }}"})),
    ] {
        assert!(validator.is_valid(&fits), "{fits}");
    }
    for wrong in [
        document("raster.validate", json!({"source": "gs://x", "bnads": 1})),
        document("raster.validate", json!({"source": "gs://x", "bands": "three"})),
        document("raster.validate", json!({})),
        document("raster.merge", json!({})),
        child(json!({"source": "gs://x", "bands": 0})),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    for kind in [Schema::Task, Schema::Template] {
        assert!(kind.for_project(&types).unwrap().to_string().contains("raster.validate_config"));
    }
    let open = jsonschema::draft202012::new(&Schema::Workflow.to_json()).unwrap();
    assert!(
        open.is_valid(&document("raster.merge", json!({"anything": 1}))),
        "without a project any type may exist"
    );
    assert!(!open.is_valid(&document("Raster.merge", json!({}))));
    let broken = [file("types", FileKind::Type, "a.b", "name: a.b\nconfig: [1]\n")];
    assert!(Schema::Workflow.for_project(&broken).is_err());
}

#[test]
fn problems_of_written_settings_are_limited() {
    let written = |item: &str, list: &str| {
        let config = format!("{{properties: {{list: {{type: array, items: {item}}}}}}}");
        let workflow = format!("name: a\ntasks:\n  - {{name: t, type: a.b, config: {{list: [{list}]}}}}\n");
        said(&with_queues(&[
            file("graphs", FileKind::Workflow, "a", &workflow),
            file("types", FileKind::Type, "a.b", &format!("name: a.b\nqueue: gis\nconfig: {config}\n")),
        ]))
    };
    for item in ["{type: integer}", "{maxLength: 1}"] {
        assert_eq!(written(item, &["ab"; 150].join(", ")).len(), 100, "{item}");
    }
    let parts = ["{minimum: 0}"; 998].join(", ");
    let found = written(&format!("{{allOf: [{parts}]}}"), &["1"; 1_998].join(", "));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("tasks[0].config: it has too many values"), "{found:?}");
}
