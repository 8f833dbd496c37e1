//! Secrets reach the process that needs them and nobody else.

use crate::ebb::{Place, said};
use crate::first_run::latest_run;

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
    let place = Place::new().with("call", CALL);
    let folder = place.path().join(".ebb/secrets");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("token"), "hush-hush-hush\n").unwrap();
    let _dev = place.dev();
    let watched = place.run(&["trigger", "call", "--watch"]);
    assert_eq!(watched.status.code(), Some(0), "{}", said(&watched));
    let run = latest_run(&place);
    let (log, shown) = (place.run(&["logs", &run, "use"]), place.run(&["run", "show", &run, "--json"]));
    assert!(said(&log).contains("the token is ***"), "{}", said(&log));
    for output in [watched, log, shown] {
        assert!(!said(&output).contains("hush-hush"), "{}", said(&output));
    }
}

#[test]
fn a_missing_secret_fails_the_task_and_says_where_to_put_it() {
    let place = Place::new().with("call", CALL);
    let _dev = place.dev();
    let watched = place.run(&["trigger", "call", "--watch"]);
    assert_eq!(watched.status.code(), Some(1));
    assert!(said(&watched).contains("EBB_SECRET_TOKEN"), "{}", said(&watched));
}
