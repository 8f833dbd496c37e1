//! What an approval asks for.

use language::config;
use model::{TaskKind, TaskSpec};

pub use language::config::Approval;

/// What a task asks people for; none if it is not an approval.
pub fn approval(spec: &TaskSpec) -> Option<Result<Approval, String>> {
    let read = || config::read(spec.kind, spec.config.clone()).map_err(|error| error.to_string());
    (spec.kind == TaskKind::Approval).then(read)
}
