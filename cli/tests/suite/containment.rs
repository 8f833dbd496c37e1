//! Tasks attack what runs them: the worker, its data folder, the network, the system.

use serde_json::Value;

use crate::project::{Project, printed, shared_folder};

/// Each attack that works ends its task with an error, and so the run.
const ATTACKS: &str = r#"
name: attacks
inputs: {worker: {type: integer}, data: {type: string}, port: {type: integer}}
tasks:
  - name: environ
    type: bash
    config: {env: {PID: "{{ inputs.worker }}"}, command: '! cat /proc/$PID/environ'}
  - name: kill
    type: bash
    config: {env: {PID: "{{ inputs.worker }}"}, command: '! kill -9 $PID'}
  - name: data
    type: bash
    config: {env: {DATA: "{{ inputs.data }}"}, command: '! cat "$DATA/dev.json" && ! ls "$DATA" && ! ls /tmp'}
  - name: daemon
    type: bash
    config: {command: 'setsid sleep 3600 > /dev/null 2>&1 & echo $! > $EBB_OUTPUT'}
  - name: home
    type: bash
    config: {command: '[ "$HOME" = "$PWD" ] && [ "$TMPDIR" = "$PWD" ] && touch "$HOME/x"'}
  - name: alone
    type: bash
    network: none
    config: {env: {PORT: "{{ inputs.port }}"}, command: '! (: < /dev/tcp/127.0.0.1/$PORT)'}
  - name: metadata
    type: bash
    network: none
    config: {command: '! (: < /dev/tcp/169.254.169.254/80) 2> said && grep -q unreachable said'}
  - name: bomb
    type: bash
    resources: {processes: 20}
    config: {command: '! (for i in $(seq 50); do sleep 3600 & done) 2> said && grep -q "Resource temporarily unavailable" said'}
  - name: limited
    type: bash
    resources: {cpu: 1, memory: 256Mi, disk: 1Mi}
    config: {command: '[ $(nproc) = 1 ] && ! head -c 2000000 /dev/zero > large'}
"#;

fn is_gone(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_task_reaches_neither_its_worker_nor_the_data_folder_and_leaves_no_process() {
    let project = Project::new().with("attacks", ATTACKS);
    let dev = project.dev();
    let port = dev.url.rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let data = project.path().join(".ebb");
    let inputs =
        [format!("worker={}", dev.pid()), format!("data={}", data.display()), format!("port={port}")];
    let inputs = inputs.iter().flat_map(|input| ["--input", input.as_str()]);
    let arguments: Vec<&str> = ["trigger", "attacks", "--watch"].into_iter().chain(inputs).collect();
    let watched = project.run(&arguments);
    let run = project.latest_run();
    let explained = || project.ask(&["explain", &run]);
    assert_eq!(watched.status.code(), Some(0), "{}\n{}", printed(&watched), explained());
    let outputs = project.ask_json(&["run", "show", &run]);
    let daemon = outputs["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "daemon").unwrap();
    assert!(is_gone(&daemon["output"]), "the daemon {} is alive", daemon["output"]);
    assert!(!is_gone(&Value::from(dev.pid())), "the worker is dead");
}

const ONLINE: &str = r#"
name: online
tasks:
  - name: silent
    type: bash
    config: {command: '! (: < /dev/tcp/169.254.169.254/80) 2> said && grep -q unreachable said'}
  - name: asks
    type: bash
    depends_on: [silent]
    network: shared
    config: {command: 'true'}
"#;

#[test]
fn an_operator_keeps_all_programs_from_the_network() {
    let project = Project::new().with("online", ONLINE);
    let dev = project.dev_with(&[], &[("EBB_TASK_NETWORK", "none")]);
    project.assert_fails(&["trigger", "online", "--watch"], 1, "EBB_TASK_NETWORK=none");
    let run = project.ask_json(&["run", "show", &project.latest_run()]);
    let state = |name| {
        run["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("silent"), state("asks")), ("succeeded".into(), "failed".into()), "{run}");
    drop(dev);
}

const LARGE: &str = "
name: large
tasks:
  - name: write
    type: bash
    resources: {disk: 4Mi}
    retry_policy: {max_retries: 0}
    config: {command: 'for i in 1 2 3; do head -c 2000000 /dev/zero > $i; done; sleep 3600'}
";

#[test]
fn a_task_whose_files_together_take_too_much_is_stopped_and_names_the_limit() {
    let project = Project::new().with("large", LARGE);
    let _dev = project.dev();
    let limit = "used more disk space than resources.disk = 4Mi";
    project.assert_fails(&["trigger", "large", "--watch"], 1, limit);
}

const LINK: &str = "
name: link
tasks:
  - {name: link, type: bash, config: {command: 'ln -s /etc/hostname $EBB_OUTPUT'}}
";

#[test]
fn an_output_that_links_to_another_file_is_refused() {
    let project = Project::new().with("link", LINK);
    let _dev = project.dev();
    project.assert_fails(&["trigger", "link", "--watch"], 1, "EBB_OUTPUT is no longer a regular file");
}

const SHARED: &str = "
name: shared
inputs: {folder: {type: string}}
tasks:
  - name: write
    type: bash
    config: {env: {FOLDER: '{{ inputs.folder }}'}, command: 'echo hello > \"$FOLDER/hello\"'}
";

#[test]
fn tasks_share_the_folders_that_the_operator_names() {
    let (project, shared) = (Project::new().with("shared", SHARED), shared_folder());
    let folder = shared.path().to_str().unwrap();
    let _dev = project.dev_with(&[], &[("EBB_TASK_WRITABLE", folder)]);
    let input = format!("folder={folder}");
    let watched = project.run(&["trigger", "shared", "--watch", "--input", &input]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    assert_eq!(std::fs::read_to_string(shared.path().join("hello")).unwrap(), "hello\n");
    let other = Project::new();
    let refused = other.command(&["dev", "--port", "0"]).env("EBB_TASK_WRITABLE", "data").output().unwrap();
    assert!(printed(&refused).contains("not an absolute path"), "{}", printed(&refused));
}

const HUNGRY: &str = "
name: hungry
tasks:
  - name: eat
    type: bash
    retry_policy: {max_retries: 1, initial_delay_seconds: 0}
    config: {command: 'head -c 60000000 /dev/zero | tail -c 60000000 | wc -c; [ $EBB_ATTEMPT = 2 ]'}
";

#[test]
fn each_attempt_says_what_its_program_used() {
    let project = Project::new().with("hungry", HUNGRY);
    let _dev = project.dev();
    let watched = project.run(&["trigger", "hungry", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    let attempts = project.ask_json(&["run", "attempts", &project.latest_run(), "eat"]);
    let attempts = attempts.as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    for attempt in attempts {
        let used = |metric: &str| attempt["progress"]["metrics"][metric]["value"].as_f64();
        assert!(used("ebb.cpu_seconds").is_some_and(|seconds| seconds > 0.0), "{attempt}");
        // `tail` holds all of it before it writes any.
        assert!(used("ebb.peak_memory_bytes").is_some_and(|bytes| bytes > 60e6), "{attempt}");
    }
}
