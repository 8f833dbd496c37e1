//! Tests across crates. There is nothing here but tests: see `acceptance/`, `simulation/` and `architecture.rs`.
