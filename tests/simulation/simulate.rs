//! Runs many simulated worlds: `cargo run -p ebbflow-tests --example simulate -- --seeds 20000 [--seed 7]`.

#![allow(clippy::unwrap_used, reason = "it may fail where it stands")]
#![allow(dead_code, reason = "the tests use the rest")]

mod bugs;
mod bus;
mod check;
mod clock;
mod coverage;
mod fairness;
mod fault_points;
mod faults;
mod forwarded;
mod instance;
mod leasing;
mod observer;
mod offers;
mod people;
mod plans;
mod ready;
mod replay;
mod reports;
mod script;
mod seeds;
mod slots;
mod store;
mod timers;
mod workflows;
mod world;

use std::process::ExitCode;
use std::time::Instant;

/// How the command is used.
const USAGE: &str = "usage: simulate --seeds N [--seed FIRST]";

fn main() -> ExitCode {
    let (mut seeds, mut first) = (2_000, 0);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse().ok());
        match (word.as_str(), number) {
            ("--seeds", Some(number)) => seeds = number,
            ("--seed", Some(number)) => first = number,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    let began = Instant::now();
    let total = seeds::play_all(first..first + seeds, |done| {
        if done % 500 == 0 {
            println!("{done} of {seeds} seeds, {:.0} a second", done as f64 / began.elapsed().as_secs_f64());
        }
    });
    println!(
        "{seeds} seeds in {:.0} s, {} compared with a world without faults",
        began.elapsed().as_secs_f64(),
        total.compared
    );
    println!("passed: {:?}", total.tally.passed);
    println!("injected: {:?}", total.tally.injected);
    let gaps = coverage::gaps(&total.moves, &total.tally);
    println!("what never happened: {gaps:?}");
    if total.failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{}", seeds::report(&total.failures, 5));
    ExitCode::FAILURE
}
