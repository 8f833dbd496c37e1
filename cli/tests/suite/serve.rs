//! `ebb serve`: each function, from the one program that an image holds.

use std::process::{Command, Output};

use crate::project::printed;

fn serve(function: &str, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["serve", function, "--check"]).env_clear().envs(settings.iter().copied()).output().unwrap()
}

#[test]
fn every_function_reports_all_problems_of_its_settings() {
    for function in ["trigger", "evaluate", "execute", "sweep", "console"] {
        let output = serve(function, &[("PORT", "http")]);
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        for name in [function, "PORT", "DATABASE_URL", "EBB_PROJECT", "EBB_PUSH_AUTH"] {
            assert!(printed(&output).contains(name), "{name} is missing in:\n{}", printed(&output));
        }
    }
}

#[test]
fn settings_are_checked_without_a_database() {
    let settings = [("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];
    let output = serve("sweep", &settings);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(printed(&output), "sweep: the configuration is valid\n");
}

#[test]
fn an_unknown_function_is_not_served() {
    let output = serve("sweeep", &[]);
    assert!(!output.status.success() && printed(&output).contains("sweep"), "{}", printed(&output));
}
