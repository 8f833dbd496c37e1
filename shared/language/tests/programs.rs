//! Programs: their text stays as it is, and no value becomes a part of it. A real bash is the judge.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Stdio};

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

/// How commands store a value: `V` stands for it, `N` for an environment variable that holds it.
const STORES: &[&str] = &[
    "n=V",
    "n=$N",
    "n=$(echo V)",
    "read -r n <<< V",
    "read -r n <<< \"$N\"",
    "set -- V; n=$1",
    "a=(V); n=${a[0]}",
    "for n in V; do :; done",
    "printf -v n %s V",
    "m=V; n=$m",
    "n=\"x\"; n+=V",
    "n=1",
    "n=$(wc -c <<< V)",
    "echo V | { read -r n; :; }",
    "f() { n=$1; }; f V",
];
/// What they do with the variable later.
const USES: &[&str] = &[
    "(( n > 3 ))",
    "echo $((n + 1))",
    "[[ $n -gt 3 ]]",
    "[[ n -eq 3 ]]",
    "[ \"$n\" -gt 3 ]",
    "x=abcdef; echo ${x:n:1}",
    "a=(1 2 3); echo ${a[n]}",
    "a=(1 2 3); a[$n]=4",
    "declare -i k; k=n",
    "let k=n",
    "k=n; (( k ))",
    "echo ${!n}",
    "echo \"${n@P}\"",
    "unset \"b[$n]\"",
    "eval \"k=$n\"",
    "case $n in 1) :;; esac",
    "for ((i=0; i<n && i<2; i++)); do :; done",
    "[[ $n == x ]] && (( 1 ))",
    "echo \"${n:-none}\"",
    "test -v \"$n\"",
    "bash -c '(( N > 1 ))'",
    "for k in $n; do (( k )); done",
    "printf '%s' \"$n\"",
];

/// A value that creates a file wherever bash computes it.
const CANARY: &str = "a[$(touch canary)]";

/// Runs a command with a value in a folder. Returns whether it was accepted.
fn is_run(command: &str, value: &Value, folder: &Path) -> bool {
    let config = json!({"command": command, "env": {"N": "{{ inputs.v }}"}});
    let Ok(config) = TaskType::of(&TaskKind::Bash).render(&config, &scope(value)) else { return false };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let env = config["env"].as_object().unwrap().iter().map(|(name, value)| (name, text(value)));
    let mut bash = Command::new("bash");
    bash.args(["-c", config["command"].as_str().unwrap()]).envs(env).current_dir(folder);
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    true
}

#[test]
fn a_value_that_is_stored_first_is_not_run_later() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stored-values");
    std::fs::create_dir_all(&folder).unwrap();
    let (mut numbers, mut texts, mut all) = (0, 0, 0);
    for (store, usage) in STORES.iter().flat_map(|store| USES.iter().map(move |usage| (store, usage))) {
        let command = format!("{store}; {usage}").replace('V', "{{ inputs.v }}");
        texts += usize::from(is_run(&command, &json!(CANARY), &folder));
        assert!(!folder.join("canary").exists(), "{command}");
        numbers += usize::from(is_run(&command, &json!(7), &folder));
        all += 1;
    }
    assert_eq!(numbers, all, "a number is always accepted");
    assert!(all / 5 < texts && texts < all / 2, "{texts} of {all} accept any text");
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
