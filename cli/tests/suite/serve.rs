//! `ebb serve`: each function, from the one program that an image holds.

use std::process::{Command, Output};

use crate::ebb::said;

fn serve(function: &str, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["serve", function, "--check"]).env_clear().envs(settings.iter().copied()).output().unwrap()
}

#[test]
fn every_function_says_everything_that_is_wrong_with_its_settings() {
    for function in ["trigger", "evaluate", "execute", "sweep", "console"] {
        let output = serve(function, &[("PORT", "http")]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for name in [function, "PORT", "DATABASE_URL", "EBB_PROJECT", "EBB_PUSH_AUTH"] {
            assert!(said(&output).contains(name), "{name} is missing in:\n{}", said(&output));
        }
    }
}

#[test]
fn settings_are_checked_without_a_database() {
    let settings = [("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];
    let output = serve("sweep", &settings);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "sweep: the configuration is valid\n");
}

#[test]
fn what_is_no_function_is_not_served() {
    let output = serve("sweeep", &[]);
    assert!(!output.status.success() && said(&output).contains("sweep"), "{}", said(&output));
}
