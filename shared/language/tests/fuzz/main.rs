//! A fuzzer: whatever a file, an expression or a command says, the language answers soon, in little space, and
//! never panics.
//!
//! `EBB_FUZZ_SECONDS` is how long all targets take together, 3 by default; the head of `shared/testkit/src/fuzzing.rs` has
//! the commands for long runs of every fuzzer. Cases are numbered and always the same;
//! `EBB_SEED` is the number of the first one. A failure names its number and how to see it again. The number of the
//! case that is being tried also stands in `fuzz-TARGET.seed` in the build's `tmp` folder, for the kind of failure
//! that ends the process, such as a stack overflow.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bombs;
mod corpus;
mod grammar;
mod harness;
mod mutate;
mod random;
mod shrink;
mod targets;
mod words;
mod yaml;

use harness::fuzz;

#[test]
fn files_are_compiled_whatever_they_say() {
    fuzz("files_are_compiled_whatever_they_say", &targets::files::TARGET);
}

#[test]
fn expressions_are_evaluated_whatever_they_say() {
    fuzz("expressions_are_evaluated_whatever_they_say", &targets::templates::EXPRESSIONS);
}

#[test]
fn templates_are_rendered_whatever_they_say() {
    fuzz("templates_are_rendered_whatever_they_say", &targets::templates::TEMPLATES);
}

#[test]
fn no_value_becomes_part_of_a_command_whatever_it_says() {
    fuzz("no_value_becomes_part_of_a_command_whatever_it_says", &targets::commands::TARGET);
}

#[test]
fn inputs_are_bound_whatever_is_given() {
    fuzz("inputs_are_bound_whatever_is_given", &targets::inputs::TARGET);
}

#[test]
fn durations_and_schedules_are_read_whatever_they_say() {
    fuzz("durations_and_schedules_are_read_whatever_they_say", &targets::times::TARGET);
}
