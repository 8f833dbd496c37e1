//! Tests of workflows: the real engine plays a run under virtual time, without a database, and stubs stand in for
//! the work.
//!
//! A test file says what a run is given, what its tasks come to and what people do meanwhile, and what is expected
//! of it. Nothing is carried out: an attempt that is dispatched ends as its stub says, and time jumps from one
//! thing that is due to the next. The modules in reading order:
//!
//! - `suite`, `cast`, `stub`, `line`, `expect`: what a test file may say, one concern each.
//! - `stage`, `role`, `props`, `attempt`, `callback`: a run is played, and with it the runs that it starts.
//! - `outcome`, `judge`, `compare`, `waiting`: what came of it, held against what is expected.

mod attempt;
mod callback;
mod cast;
mod compare;
mod expect;
mod judge;
mod line;
mod outcome;
mod props;
mod read;
mod role;
mod stage;
mod stub;
mod suite;
mod waiting;

pub use suite::{Refusal, Suite, Test, TestFile};
