//! The settings of approvals.

use language::config;
use model::{TaskKind, TaskSpec};

pub use language::config::Approval;

/// The settings of an approval; none if the task is of another type.
pub fn approval(spec: &TaskSpec) -> Option<Result<Approval, String>> {
    let read = || config::read(&spec.kind, spec.config.clone()).map_err(|error| error.to_string());
    (spec.kind == TaskKind::Approval).then(read)
}
