//! Any of the functions as a process, for tests; the first argument names it. It is an example because examples are built
//! together with the tests, from the same dependencies.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("trigger") => trigger::main(),
        Some("evaluate") => evaluate::main(),
        Some("execute") => execute::main(),
        Some("sweep") => sweep::main(),
        Some("console") => console::main(),
        other => panic!("there is no function {other:?}"),
    }
}
