//! The engine's tests from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod breakers;
mod decisions;
mod fans;
mod hand_back;
mod losses;
mod offers;
mod operators;
mod oversight;
mod random_graphs;
mod rechecks;
mod reports;
mod reruns;
mod rows;
mod sensors;
mod slots;
