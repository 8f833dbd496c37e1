//! Typed inputs: as a workflow declares them, and as a run is given them.

mod bind;
mod declared;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use model::{InputSpec, InputType};

pub use bind::{InputProblem, bind, render};
pub(crate) use declared::{InputParts, read, schema};
pub(crate) use value::{TYPES, by_type, refusal, schema as value_schema};

/// For templates that see no inputs.
pub(crate) static NO_INPUTS: InputNames =
    InputNames { order: Vec::new(), set: BTreeSet::new(), kinds: BTreeMap::new() };

/// The names of inputs, to look them up and to list them in the order in which they are declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputNames {
    order: Vec<String>,
    set: BTreeSet<String>,
    kinds: BTreeMap<String, InputType>,
}

impl InputNames {
    /// The names of declared inputs.
    pub(crate) fn of(inputs: &[InputSpec]) -> Self {
        let mut names = Self::default();
        inputs.iter().for_each(|input| names.push(&input.name));
        names.kinds = inputs.iter().map(|input| (input.name.clone(), input.kind)).collect();
        names
    }

    pub(crate) fn push(&mut self, name: &str) {
        if self.set.insert(name.to_owned()) {
            self.order.push(name.to_owned());
        }
    }

    /// The type of an input.
    pub(crate) fn kind(&self, name: &str) -> Option<InputType> {
        self.kinds.get(name).copied()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.set.contains(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.order.iter().map(String::as_str)
    }
}

/// The names of inputs, in the order in which they are declared.
pub(crate) fn names(inputs: &[InputSpec]) -> impl Iterator<Item = &str> + Clone {
    inputs.iter().map(|input| input.name.as_str())
}
