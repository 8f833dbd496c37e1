//! Tests of workflows: the real engine executes a run under virtual time, without a database, and stubs replace the work.
//!
//! A test file states a run's inputs, what its tasks return, what people do meanwhile, and what is expected of the run. No
//! task is executed: a dispatched attempt ends as its stub says, and time jumps from one due event to the next. The modules
//! in reading order:
//!
//! - `suite`, `fixtures`, `stub`, `action`, `expect`: the parts of a test file.
//! - `runner`, `tracked_run`, `fakes`, `attempt`, `callback`: execute a run, and the runs that it starts.
//! - `outcome`, `assertions`, `compare`, `waiting`: compare the result with what is expected.

mod action;
mod assertions;
mod attempt;
mod callback;
mod compare;
mod expect;
mod fakes;
mod fixtures;
mod outcome;
mod runner;
mod stub;
mod suite;
mod tracked_run;
mod waiting;

pub use suite::{Refusal, Suite, Test, TestFile};
