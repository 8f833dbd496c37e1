//! The console in a real browser: Debian's Chromium, driven by Playwright. The scenarios are in `browser/pages.mjs`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::Project;

/// The driver of the browser, and the checker of accessibility.
const TOOLS: [&str; 2] = ["playwright-core@1.65.0", "axe-core@4.14.0"];

const WORKFLOWS: [(&str, &str); 9] = [
    ("broken", include_str!("../../../workflows/graphs/broken.yaml")),
    (
        "nightly",
        "
name: nightly
description: Loads what was sold and sends a report.
tags: [sales, nightly]
schedule: {cron: '0 2 * * *', timezone: Europe/Berlin}
tasks:
  - {name: extract, type: bash, config: {command: 'echo reading; echo {\\\"rows\\\":3} > \"$EBB_OUTPUT\"'}}
  - {name: check, type: noop, depends_on: [extract]}
  - name: load
    type: bash
    depends_on: [check]
    config: {command: 'echo connecting; test -e PROJECT/fixed || { echo cannot reach the warehouse >&2; exit 3; }'}
  - {name: report, type: noop, depends_on: [load]}
",
    ),
    (
        "ask",
        "
name: ask
tasks:
  - name: decide
    type: approval
    config: {message: How much shall be paid?, fields: {amount: {type: number, required: true}}}
  - {name: pay, type: noop, depends_on: [decide]}
",
    ),
    (
        "nap",
        "{name: nap, tasks: [{name: nap, type: sleep, config: {duration: 1h}}, {name: up, type: noop, depends_on: [nap]}]}",
    ),
    (
        "form",
        "
name: form
inputs:
  count: {type: integer, description: How many}
  day: {type: date}
  mode: {type: string, default: full, enum: [full, delta]}
  loud: {type: boolean, default: false}
  more: {type: object, default: {a: 1}}
tasks: [{name: only, type: echo, config: {text: \"{{ inputs.count }}\"}}]
",
    ),
    (
        "wide",
        "{name: wide, tasks: [{name: each, type: fan_out, for_each: range(120), task: {type: noop}}, \
         {name: join, type: fan_in, depends_on: [each], aggregation: collect}]}",
    ),
    (
        "vast",
        "{name: vast, tasks: [{name: each, type: fan_out, for_each: range(10000), task: {type: noop}}]}",
    ),
    (
        "choosy",
        "
name: choosy
inputs: {n: {type: integer}}
tasks:
  - {name: look, type: bash, config: {command: sleep 0.3}}
  - {name: large, type: noop, depends_on: [look], when: inputs.n > 3}
  - {name: after, type: noop, depends_on: [large]}
  - {name: small, type: bash, depends_on: [look], config: {command: sleep 0.2}}
  - {name: quick, type: noop, depends_on: [look]}
  - {name: end, type: noop, depends_on: [small, quick]}
",
    ),
    (
        "evil",
        "
name: evil
description: '<img src=x onerror=alert(1)>'
inputs: {text: {type: string, description: '<b>bold</b>'}}
tasks:
  - {name: say, type: bash, config: {env: {TEXT: '{{ inputs.text }}'}, command: 'echo \"$TEXT\"; echo \"$TEXT\" >&2'}}
  - {name: deliver, type: echo, config: {text: '{{ inputs.text }}'}}
  - {name: break, type: fail, config: {message: '{{ inputs.text }}'}}
",
    ),
];

/// Fails early if a program is missing.
fn needs(program: &str) {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(
        found,
        "`{program}` is missing: tests/run installs it (sudo apt-get install chromium nodejs npm)"
    );
}

/// The folder of the tools, which are downloaded once.
fn tools() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    if !folder.join("node_modules/axe-core").exists() {
        std::fs::write(folder.join("package.json"), "{\"private\": true}").unwrap();
        let arguments = [&["install", "--no-audit", "--no-fund", "--ignore-scripts"], &TOOLS[..]].concat();
        let output = Command::new("npm").args(&arguments).current_dir(&folder).output().unwrap();
        let (arguments, error) = (arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "npm {arguments} in {}: {error}", folder.display());
    }
    folder
}

#[test]
fn people_work_with_the_console_in_a_real_browser() {
    ["chromium", "node", "npm"].iter().for_each(|program| needs(program));
    let mut project = Project::new();
    let here = project.path().display().to_string();
    for (name, text) in WORKFLOWS {
        project = project.with(name, &text.replace("PROJECT", &here));
    }
    let dev = project.dev_with(&[], &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pages.mjs");
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
    let output = Command::new("node")
        .arg(script)
        .envs([("URL_OF", dev.url.as_str()), ("TOKEN", dev.token.as_str())])
        .envs([("CHROMIUM", "/usr/bin/chromium"), ("PROJECT", here.as_str())])
        .env("TOOLS", tools())
        .env("SHOTS", shots)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    println!("{report}");
    let log = std::fs::read_to_string(project.log()).unwrap();
    let problems: Vec<&str> =
        log.lines().filter(|line| line.contains("ERROR") || line.contains("WARN")).collect();
    let (error, problems) = (String::from_utf8_lossy(&output.stderr), problems.join("\n"));
    assert!(output.status.success(), "{report}{error}\n{problems}");
}
