//! Outputs that are read together: limited in bytes, so that no run takes more memory than this, however many tasks it has.

use std::collections::BTreeMap;

use model::TaskIndex;
use serde_json::Value;

use crate::{Error, Result};

/// The maximum size of the outputs that are read together, in bytes of JSON.
pub const MAX_OUTPUTS: usize = 16 * 1024 * 1024;

/// Outputs as far as they were read.
#[derive(Default)]
pub(crate) struct Outputs {
    found: BTreeMap<TaskIndex, Value>,
    bytes: usize,
}

impl Outputs {
    /// Adds an output of that size, or refuses it.
    pub(crate) fn add(&mut self, task: TaskIndex, output: Value, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > MAX_OUTPUTS {
            return Err(Error::TooLarge);
        }
        self.found.insert(task, output);
        Ok(())
    }

    /// Returns all outputs that were found, by task.
    pub(crate) fn into_all(self) -> BTreeMap<TaskIndex, Value> {
        self.found
    }

    /// All of these, or an error if they are too large together.
    pub(crate) fn gather(
        outputs: impl IntoIterator<Item = (TaskIndex, Value)>,
    ) -> Result<BTreeMap<TaskIndex, Value>> {
        let mut gathered = Self::default();
        for (task, output) in outputs {
            let bytes = output.to_string().len();
            gathered.add(task, output, bytes)?;
        }
        Ok(gathered.into_all())
    }
}

/// The part of an output that counts: of one with this field, only the field.
pub(crate) fn only(field: Option<&str>, output: Value) -> Value {
    match (field, output) {
        (Some(field), Value::Object(mut fields)) if fields.contains_key(field) => {
            fields.retain(|name, _| name == field);
            Value::Object(fields)
        }
        (_, output) => output,
    }
}
