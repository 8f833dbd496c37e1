//! Tests for which a machine lacks a program.

use std::env;

/// Prints that a test does not run here, for lack of something that `tests/run` installs.
///
/// # Panics
/// With `GATE=complete`, as in Cloud Build, where no test may be missing.
pub fn skip(reason: &str) {
    skip_at(env::var("GATE").ok().as_deref(), reason);
}

fn skip_at(gate: Option<&str>, reason: &str) {
    assert_ne!(gate, Some("complete"), "the complete gate skips no test: {reason}");
    eprintln!("skipped: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_gate_may_skip_tests() {
        skip_at(None, "there is no uv");
        skip_at(Some(""), "there is no uv");
    }

    #[test]
    #[should_panic(expected = "the complete gate skips no test: there is no uv")]
    fn the_complete_gate_may_not() {
        skip_at(Some("complete"), "there is no uv");
    }
}
