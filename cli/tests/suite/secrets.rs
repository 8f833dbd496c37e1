//! Secrets reach the process that needs them, and appear nowhere else.

use crate::project::{Project, printed};

const CALL: &str = "
name: call
tasks:
  - name: use
    type: bash
    config:
      env: {TOKEN: '{{ secrets.token }}'}
      command: |
        echo the token is $TOKEN
        test $TOKEN = hush-hush-hush
        echo \"{\\\"token\\\": \\\"$TOKEN\\\"}\" > $EBB_OUTPUT
";

#[test]
fn a_secret_is_used_and_shown_nowhere() {
    let project = Project::new().with("call", CALL).with_secret("token", "hush-hush-hush\n");
    let _dev = project.dev();
    let watched = project.run(&["trigger", "call", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}", printed(&watched));
    let run = project.latest_run();
    let (log, shown) = (project.run(&["logs", &run, "use"]), project.run(&["run", "show", &run, "--json"]));
    assert!(printed(&log).contains("the token is ***"), "{}", printed(&log));
    for output in [watched, log, shown] {
        assert!(!printed(&output).contains("hush-hush"), "{}", printed(&output));
    }
}

#[test]
fn a_missing_secret_fails_the_task_and_the_error_says_where_to_put_it() {
    let project = Project::new().with("call", CALL);
    let _dev = project.dev();
    project.assert_fails(&["trigger", "call", "--watch"], 1, "EBB_SECRET_DEFAULT__TOKEN");
}
