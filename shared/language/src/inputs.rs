//! Typed inputs: as a workflow declares them, and as a run is given them.

mod bind;
mod declared;
mod value;

use model::InputSpec;

pub use bind::{InputProblem, bind, render};
pub(crate) use declared::{InputParts, read, schema};
pub(crate) use value::{TYPES, by_type, refusal, schema as value_schema};

/// The names of inputs, in the order in which they are declared.
pub(crate) fn names(inputs: &[InputSpec]) -> impl Iterator<Item = &str> + Clone {
    inputs.iter().map(|input| input.name.as_str())
}
