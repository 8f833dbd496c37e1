//! What the bus promises, on every implementation of it.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod conformance;
mod envelope;
mod faults;
mod foreign;
mod http;
mod local;
mod messages;
mod receiver;
mod wake_ups;
