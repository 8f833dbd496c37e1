//! Fan-outs and fan-ins: one task for each element of a list, and what becomes of their outputs.

use serde::{Deserialize, Serialize};

use crate::TaskSpec;

/// The task that a `fan_out` runs for each element of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FanOut {
    /// An expression whose value is the list.
    pub for_each: String,
    /// The maximum number of children under way at the same time; all at once if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// How many children may fail without the fan-out failing.
    #[serde(default)]
    pub tolerated_failures: Tolerance,
    /// The task that each child is; its templates also know `item` and `index`. It has no name of its own.
    pub task: Box<TaskSpec>,
}

/// How many children may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// At most this number of children.
    Count(u32),
    /// At most this percentage of children.
    Percent(u32),
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::Count(0)
    }
}

impl Tolerance {
    /// Whether `failed` of `total` may fail.
    pub fn allows(self, failed: u32, total: u32) -> bool {
        match self {
            Self::Count(count) => failed <= count,
            Self::Percent(percent) => u64::from(failed) * 100 <= u64::from(percent) * u64::from(total),
        }
    }
}

/// How a `fan_in` combines the outputs of children.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FanIn {
    /// How they are combined.
    pub aggregation: Aggregation,
    /// The field of each output to use; the whole output if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// How outputs of children are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// `{results, count}`: every output, in the order of the list.
    #[default]
    Collect,
    /// The same, with lists among the outputs flattened.
    Concat,
    /// `{total, count}`: the sum of the outputs.
    Sum,
    /// The first one's output.
    First,
    /// The last one's output.
    Last,
}
