//! Rendered configs as the types that carry tasks out read them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use ebbflow_language::config::{
    self, Approval, Auth, Bash, ChildWorkflow, ConfigError, Fail, Flaky, Http, Method, Program, Python,
    Sleep, Transform, WaitForSignal,
};
use ebbflow_language::types::TaskType;
use model::{ErrorClass, TaskKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(name: &str, config: Value) -> Result<T, ConfigError> {
    config::read(&TaskKind::named(name).unwrap(), config)
}

#[test]
fn defaults_are_filled_in() {
    let fail: Fail = read("fail", json!({})).unwrap();
    assert_eq!((fail.message.0.as_str(), fail.class), ("failed on purpose", ErrorClass::Transient));
    let flaky: Flaky = read("flaky", json!({})).unwrap();
    assert_eq!(flaky, Flaky { probability: 0.2, seed: None });
    let http: Http = read("http", json!({"url": "https://x", "body": null})).unwrap();
    assert_eq!((http.method(), http.body.clone(), http.auth.clone()), (Method::Get, None, None));
    assert!(http.expects(204) && !http.expects(302));
}

#[test]
fn a_body_makes_a_post_of_what_names_no_method() {
    let method = |config| read::<Http>("http", config).unwrap().method();
    assert_eq!(method(json!({"url": "https://x", "body": "a"})), Method::Post);
    assert_eq!(method(json!({"url": "https://x", "body": "a", "method": "GET"})), Method::Get);
    assert_eq!(method(json!({"url": "https://x", "method": "DELETE"})), Method::Delete);
}

#[test]
fn http_takes_all_it_offers() {
    let config = json!({
        "method": "POST", "url": "http://x", "headers": {"A": "b", "N": 5}, "body": {"a": 1},
        "expected_status": [200, 404], "auth": {"basic": {"username": "u", "password": "p"}},
    });
    let http: Http = read("http", config).unwrap();
    assert_eq!(http.headers["N"].0, "5");
    assert!(http.expects(404) && !http.expects(201));
    assert!(matches!(http.auth, Some(Auth::Basic(basic)) if basic.username == "u"));
}

#[test]
fn a_sleep_ends_after_its_duration_or_at_its_instant() {
    let start = "2026-01-31T18:00:00Z".parse().unwrap();
    let length: Sleep = read("sleep", json!({"duration": "1h30m"})).unwrap();
    assert_eq!((length.ends(start) - start).to_std().unwrap(), Duration::from_secs(5_400));
    let until: Sleep = read("sleep", json!({"until": "2026-02-01T00:00:00+01:00"})).unwrap();
    assert_eq!(until.ends(start).to_rfc3339(), "2026-01-31T23:00:00+00:00");
}

#[test]
fn a_process_has_exactly_one_program() {
    let Bash(bash) =
        read("bash", json!({"command": "ls {{", "env": {"N": 5, "B": true}, "args": ["a", 1]})).unwrap();
    assert_eq!(bash.program, Program::Command("ls {{".to_owned()));
    assert_eq!(
        (bash.env["N"].as_str(), bash.env["B"].as_str(), bash.args.join(" ").as_str()),
        ("5", "true", "a 1")
    );
    let python: Python = read("python", json!({"code": "print()"})).unwrap();
    assert_eq!(python.process.program, Program::Code("print()".to_owned()));
    assert_eq!(python.environment, Default::default());
    assert!(read::<Python>("python", json!({"code": "print()", "function": "a:b"})).is_err());
}

#[test]
fn a_function_has_values_for_its_parameters_and_packages() {
    let config = json!({
        "function": "a.b:C.run", "kwargs": {"n": [1, {"x": null}]}, "requirements": ["pandas==2.2"],
        "requirements_file": "requirements.txt", "python_version": "3.12",
    });
    let Python { process, environment } = read("python", config).unwrap();
    let Program::Function(function, kwargs) = process.program else { panic!("it is a function") };
    assert_eq!((function.as_str(), &kwargs["n"]), ("a.b:C.run", &json!([1, {"x": null}])));
    assert_eq!((environment.requirements.len(), environment.version.as_deref()), (1, Some("3.12")));
    for wrong in [
        json!({"function": "run"}),
        json!({"function": "a:b()"}),
        json!({"function": "a/b:run"}),
        json!({"function": "{{ inputs.f }}"}),
        json!({"function": "a:b", "python_version": "latest"}),
        json!({"function": "a:b", "python_version": 3.10}),
        json!({"function": "a:b", "requirements": ["--index-url=x"]}),
        json!({"function": "a:b", "requirements": ["a\n--index-url=x"]}),
        json!({"function": "a:b", "requirements_file": "../x"}),
        json!({"function": "a:b", "files": {"/etc/x": ""}}),
        json!({"code": "pass", "kwargs": {"n": 1}}),
    ] {
        assert!(read::<Python>("python", wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn the_published_pattern_of_a_script_path_is_its_rule() {
    let pattern = regex::Regex::new(model::ScriptPath::PATTERN).unwrap();
    for path in [
        "load.sh",
        "etl/load.sh",
        "./load.sh",
        "a..b/c...sh",
        "with space.py",
        "a//b",
        "a/./b",
        "",
        "/etc/passwd",
        "../x.sh",
        "a/../../x.sh",
        "a/..",
        "..",
        ".",
        "./",
        "a/",
        "..\\x",
    ] {
        assert_eq!(pattern.is_match(path), model::ScriptPath::new(path).is_ok(), "{path:?}");
    }
}

#[test]
fn files_of_a_program_are_no_templates() {
    let config = json!({"script": "a.py", "files": {"a.py": "print('{{ inputs.nope }}', '{% if')"}});
    let rendered = TaskType::of(&TaskKind::Python).render(&config, &Default::default()).unwrap();
    assert_eq!(rendered, config);
}

#[test]
fn an_expression_is_no_template() {
    let transform = TaskType::of(&TaskKind::Transform);
    let config = json!({"expression": "{'a': {'{{': inputs.nope}}"});
    let rendered = transform.render(&config, &Default::default()).unwrap();
    assert_eq!(rendered, config);
    let Transform { expression } = read("transform", rendered).unwrap();
    assert_eq!(expression, "{'a': {'{{': inputs.nope}}");
}

#[test]
fn a_task_waits_for_its_child_run_by_default() {
    let child: ChildWorkflow = read("workflow", json!({"workflow": "report"})).unwrap();
    assert_eq!((child.workflow.as_str(), child.inputs.len(), child.wait), ("report", 0, true));
    let config = json!({"workflow": "report", "inputs": {"n": 1}, "wait": false});
    let child: ChildWorkflow = read("workflow", config).unwrap();
    assert_eq!((&child.inputs["n"], child.wait), (&json!(1), false));
    assert!(read::<ChildWorkflow>("workflow", json!({"workflow": "No Such"})).is_err());
}

#[test]
fn a_wait_is_given_up_at_its_deadline_if_it_has_one() {
    let start = "2026-01-31T18:00:00Z".parse().unwrap();
    let wait: WaitForSignal = read("wait_for_signal", json!({"signal": "paid", "timeout": "1h"})).unwrap();
    assert_eq!(wait.deadline(start).unwrap().to_rfc3339(), "2026-01-31T19:00:00+00:00");
    let wait: WaitForSignal = read("wait_for_signal", json!({"signal": "paid", "timeout": null})).unwrap();
    assert_eq!((wait.signal.as_str(), wait.deadline(start)), ("paid", None));
    let approval: Approval = read("approval", json!({"timeout": 90})).unwrap();
    assert_eq!(approval.deadline(start).unwrap().to_rfc3339(), "2026-01-31T18:01:30+00:00");
}

#[test]
fn an_approval_allows_those_it_names_or_everyone() {
    let everyone: Approval = read("approval", json!({})).unwrap();
    assert!(everyone.allows("ann"));
    let some: Approval = read("approval", json!({"message": 5, "approvers": ["ann", "bob"]})).unwrap();
    assert!(some.allows("bob") && !some.allows("eve"));
    assert_eq!(some.message.unwrap().0, "5");
}

#[test]
fn an_answer_must_fit_the_form() {
    let fields = json!({
        "amount": {"type": "number", "required": true}, "day": {"type": "date"}, "why": {"type": "string"},
    });
    let approval: Approval = read("approval", json!({"fields": fields})).unwrap();
    let problems = |answer: Value| approval.problems(answer.as_object().unwrap());
    assert_eq!(problems(json!({"amount": 5, "why": null})), [""; 0]);
    assert_eq!(
        problems(json!({"day": "today", "wy": "because"})),
        [
            "field `wy`: the form has no such field (did you mean `why`?)",
            "field `amount`: it is required",
            "field `day`: expected a date such as `2026-01-31`, found the text `today`",
        ]
    );
}

#[test]
fn what_a_template_gave_is_checked_again() {
    let reported = |name: &str, config| read::<Value>(name, config).unwrap_err().to_string();
    let all = [
        reported("http", json!({"url": 5, "expected_status": ["{{ x }}"], "nope": 1})),
        reported("sleep", json!({"duration": "soon"})),
        reported("sleep", json!({"duration": null})),
        reported("bash", json!({"command": null, "script": null})),
        reported("flaky", json!({"probability": 7})),
        reported("wait_for_signal", json!({"signal": "a b", "timeout": "soon"})),
        reported("approval", json!({"approvers": "ann", "fields": {"n": {"type": "float"}}})),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_script_that_an_input_names_stays_in_its_folder() {
    for kind in ["bash", "python"] {
        for path in ["../x.sh", "/etc/profile", "a/../../x.sh", ".."] {
            let error = read::<Value>(kind, json!({"script": path})).unwrap_err().to_string();
            assert!(error.contains("script"), "{kind} {path}: {error}");
        }
    }
}
