//! Any of the functions as a process of its own, for tests: the first argument names it. An example, since these are
//! built together with the tests and share everything with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("trigger") => trigger::main(),
        Some("evaluate") => evaluate::main(),
        Some("execute") => execute::main(),
        Some("sweep") => sweep::main(),
        other => panic!("there is no function {other:?}"),
    }
}
