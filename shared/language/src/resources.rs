//! `resources` and `network` of a task, as written.

use model::{NetworkAccess, Resources};
use serde_json::json;

use crate::diagnostic::Report;
use crate::node::{Data, Node};
use crate::read;
use crate::shape::{Shape, custom, record, whole};
use crate::size::{self, Size};

const MAX_CPUS: u32 = 1_024;
const MAX_PROCESSES: u32 = 1_000_000;

record! {
    /// The maximum amounts that a task's program may use.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct ResourceParts as "`resources`" {
        /// The number of CPUs.
        cpu: u32 = whole(1..=MAX_CPUS),
        /// The memory, such as `512Mi` or `2Gi`: of all processes together where the worker has control groups, and of each otherwise.
        memory: Size = size(),
        /// The size of each file that it writes, and of all that is in its scratch directory, such as `10Gi`.
        disk: Size = size(),
        /// The number of processes and threads.
        processes: u32 = whole(1..=MAX_PROCESSES),
    }
}

impl ResourceParts {
    pub(crate) fn complete(self) -> Resources {
        let (memory, disk) = (self.memory.map(|size| size.0), self.disk.map(|size| size.0));
        Resources { cpu: self.cpu, memory, disk, processes: self.processes }
    }
}

/// A number of bytes, with or without a unit.
fn size<'n>() -> impl Shape<'n, Value = Size> {
    let schema = || json!({"type": ["string", "integer"], "pattern": size::PATTERN, "minimum": 1, "examples": ["512Mi", "2Gi"]});
    let read = |node: &Node, report: &mut Report<'_>| {
        let text = match &node.data {
            Data::Text(text) => text.clone(),
            _ => node.to_json().to_string(),
        };
        text.parse().map_err(|problem: size::NotASize| report.add(&node.at, problem.to_string(), None)).ok()
    };
    custom(read, schema)
}

/// The names of network accesses that a task may ask for.
const NETWORKS: [&str; 2] = ["shared", "none"];

/// Accesses that no worker can enforce for one program: Landlock knows ports but no addresses, a network namespace of its own
/// reaches nothing, and filters of packets need rights over the whole machine, which containers do not have.
const UNENFORCEABLE: [&str; 2] = ["internet", "internal"];

/// What a task's program may reach.
pub(crate) fn network<'n>() -> impl Shape<'n, Value = NetworkAccess> {
    let read = |node: &Node, report: &mut Report<'_>| match &node.data {
        Data::Text(text) if UNENFORCEABLE.contains(&text.as_str()) => {
            let problem = format!(
                "`network: {text}` is not supported: no platform lets a worker enforce it for one program"
            );
            let hint = "use `none`, or a queue whose workers reach only that network";
            report.add(&node.at, problem, Some(hint.to_owned()));
            None
        }
        _ => read::choice(node, &NETWORKS, report),
    };
    custom(read, || json!({"type": "string", "enum": NETWORKS}))
}
