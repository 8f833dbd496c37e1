//! What readers show: which rows, in which order, and to whom.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

extern crate ebbflow_read as read;

mod change_feed;
#[allow(dead_code, reason = "the conformance suite of the store uses the rest")]
#[path = "../../../store/tests/conformance/example.rs"]
mod example;
mod isolation;
mod lists;
mod platform;
mod reader;
mod runs;
mod slots;
mod world;
