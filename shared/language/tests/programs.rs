//! Programs: their text stays as it is, and no value becomes a part of it. A real bash is the judge.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use ebbflow_language::template::{Scope, TaskFacts};
use ebbflow_language::types::TaskType;
use model::TaskKind;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Values that would do something if bash read them.
const NASTY: [&str; 10] = [
    "\"; rm -rf / #",
    "$(touch x)",
    "`touch x`",
    "a'b\"c",
    "two  words\nand * lines",
    "",
    "\\",
    "${HOME}",
    "'; exit 3; '",
    "EOF",
];

fn scope(value: &Value) -> Scope {
    let inputs = [("v".to_owned(), value.clone())].into_iter().collect();
    Scope { inputs, task: Some(TaskFacts { name: "t".to_owned(), attempt: 2 }), ..Scope::default() }
}

fn rendered(config: Value, value: &Value) -> Value {
    TaskType::of(&TaskKind::Bash).render(&config, &scope(value)).unwrap()
}

/// What bash writes when it runs the command with the value as `inputs.v`.
fn output(command: &str, value: &Value) -> String {
    let config = rendered(json!({ "command": command }), value);
    let env = config.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    let env = env.into_iter().map(|(name, value)| (name, value.as_str().unwrap().to_owned()));
    let line = config["command"].as_str().unwrap();
    let done = Command::new("bash").args(["-c", line]).envs(env).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{line}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn a_value_reaches_a_command_literally_whatever_the_quotes_around_it() {
    for value in NASTY {
        for (command, around) in [
            (r#"printf '<%s>' {{ inputs.v }}"#, ("", "")),
            (r#"printf '<%s>' "{{ inputs.v }}""#, ("", "")),
            (r#"printf '<%s>' '{{ inputs.v }}'"#, ("", "")),
            (r#"printf '<%s>' a{{ inputs.v }}b"#, ("a", "b")),
            (r#"printf '<%s>' "a \" {{ inputs.v }} '""#, ("a \" ", " '")),
            (r#"printf '<%s>' '"a '\''{{ inputs.v }}\'"#, ("\"a '", "\\")),
            (r#"printf '<%s>' "$(printf '%s.' "{{ inputs.v }}")""#, ("", ".")),
            (r#"printf '<%s>' "$(printf '%s.' {{ inputs.v }})" # isn't"#, ("", ".")),
            ("# isn't\nprintf '<%s>' {{ inputs.v }}", ("", "")),
            (r#"x={{ inputs.v }}; printf '<%s>' "${x#'"'}${#x}" >/dev/null; printf '<%s>' "$x""#, ("", "")),
            (
                r#"if [[ {{ inputs.v }} == "{{ inputs.v }}" ]]; then printf '<%s>' '{{ inputs.v }}'; fi"#,
                ("", ""),
            ),
            ("x=$(cat <<EOF\n\"a' {{ inputs.v }}.\nEOF\n); printf '<%s>' \"$x\"", ("\"a' ", ".")),
            (
                "cat >/dev/null <<-'A B' <<EOF\n\tit's\n\tA B\n\"\nEOF\nprintf '<%s>' '{{ inputs.v }}'",
                ("", ""),
            ),
        ] {
            let expected = format!("<{}{value}{}>", around.0, around.1);
            assert_eq!(output(command, &json!(value)), expected, "{command}");
        }
    }
}

#[test]
fn what_is_no_text_comes_as_json() {
    let command = "printf '<%s>' {{ inputs.v }} \"{{ inputs.v }}\"";
    assert_eq!(output(command, &json!(21)), "<21><21>");
    assert_eq!(output(command, &json!(["a b", {"c": null}])), r#"<["a b",{"c":null}]><["a b",{"c":null}]>"#);
    assert_eq!(output("echo {{ inputs.v + 1 }}/{{ task.attempt }}", &json!(1)), "2/2\n");
}

#[test]
fn variables_are_named_one_after_another_around_those_of_the_user() {
    let env = json!({"EBB_VALUE_2": "mine", "A": "{{ inputs.v }}"});
    let config = rendered(json!({"command": "echo {{ inputs.v }} '{{ inputs.v }}'", "env": env}), &json!(5));
    assert_eq!(config["command"], r#"echo "${EBB_VALUE_1}" ''"${EBB_VALUE_3}"''"#);
    assert_eq!(config["env"], json!({"EBB_VALUE_1": "5", "EBB_VALUE_2": "mine", "EBB_VALUE_3": "5", "A": 5}));
}

#[test]
fn the_text_of_programs_stays_as_it_is() {
    for text in [
        "echo ${#TEXT} ${x%suffix} {# {% {{ {{.Names}} }} {{ json .inputs }}",
        "echo \\{{ inputs.v }} # {{ inputs.v }}",
        "f\"{{}} {{{x}}}\" {'a': {'b': 1}} {% if %} {% raw %}",
    ] {
        let config = json!({"command": text, "code": text});
        assert_eq!(TaskType::of(&TaskKind::Python).render(&config, &scope(&json!(1))).unwrap(), config);
    }
}

#[test]
fn a_value_that_is_missing_is_explained() {
    let config = json!({"command": "echo {{ inputs.nope }}"});
    let error = TaskType::of(&TaskKind::Bash).render(&config, &scope(&json!(1))).unwrap_err().to_string();
    assert_eq!(error, "command: `inputs` has no `nope` (choose from `v`)");
}

fn almost_command() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{ inputs.v }}",
        "{{",
        "}}",
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "((",
        "))",
        "${",
        "}",
        "$'",
        "\\",
        "#",
        " ",
        "\n",
        "<<E",
        "<<'E'",
        "E",
        "[[ ",
        " ]]",
        "a[",
        "]",
        "é",
        "$",
    ]);
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_command_makes_the_renderer_panic_and_no_value_enters_its_text(text in almost_command()) {
        let config = json!({"command": text, "code": text});
        if let Ok(rendered) = TaskType::of(&TaskKind::Python).render(&config, &scope(&json!("secret"))) {
            prop_assert!(!rendered["command"].as_str().unwrap().contains("secret"));
            prop_assert_eq!(&rendered["code"], &config["code"]);
        }
    }
}
