//! Custom task types at run time: settings are checked before a worker gets them, outputs before they count.
//!
//! The types are part of the version, and compiled once for it. Tasks of built-in types never get here.

use std::borrow::Cow;
use std::sync::Arc;

use engine::{Command, Graph, RunSlice};
use language::TypeChecks;
use model::message::TaskResult;
use model::{Failure, TaskKind, TypeName, VersionId};
use serde_json::Value;

use crate::kept::{Kept, weigh};

/// The maximum weight of the compiled types that are kept, in bytes.
const MAX_WEIGHT: usize = 24 * 1024 * 1024;

/// The compiled types of versions. A version never changes, so what is cached is never wrong.
pub(crate) struct TypeCache(Kept<(VersionId, TypeName), TypeChecks>);

impl Default for TypeCache {
    fn default() -> Self {
        Self(Kept::new(MAX_WEIGHT))
    }
}

impl TypeCache {
    /// The type of a task; none if it is built in.
    fn get(
        &self,
        version: VersionId,
        graph: &Graph,
        kind: &TaskKind,
    ) -> Option<Result<Arc<TypeChecks>, Failure>> {
        let TaskKind::Custom(name) = kind else { return None };
        let key = (version, name.clone());
        if let Some(checks) = self.0.get(&key) {
            return Some(Ok(checks));
        }
        let Some((_, custom)) = graph.workflow().custom_type(kind) else {
            let message =
                format!("this version of the workflow has no task type `{name}`; register it again");
            return Some(Err(Failure::permanent(message)));
        };
        let checks = match TypeChecks::compile(name, custom) {
            Ok(checks) => checks,
            Err(error) => return Some(Err(Failure::permanent(format!("the task type `{name}`: {error}")))),
        };
        // The schemas are there as values and compiled, the patterns as automata.
        let weight = 2 * weigh(custom) + checks.max_pattern_bytes();
        Some(Ok(self.0.keep(key, checks, weight)))
    }

    /// Whether a worker can be given these rendered settings.
    pub(crate) fn check_config(
        &self,
        version: VersionId,
        graph: &Graph,
        kind: &TaskKind,
        rendered: &Value,
    ) -> Result<(), Failure> {
        let Some(checks) = self.get(version, graph, kind) else { return Ok(()) };
        checks?.check_config(rendered).map_err(|error| Failure::permanent(error.to_string()))
    }

    /// The command, or instead of a success whose output does not fit the task's type, the failure that it is.
    pub(crate) fn checked<'c>(&self, slice: &RunSlice<'_>, command: &'c Command) -> Cow<'c, Command> {
        if let Command::Expecting { task, then } = command {
            return match self.checked(slice, then) {
                Cow::Borrowed(_) => Cow::Borrowed(command),
                Cow::Owned(then) => Cow::Owned(Command::Expecting { task: *task, then: Box::new(then) }),
            };
        }
        let Command::Report { task, attempt, worker, started_at, result: TaskResult::Succeeded(output) } =
            command
        else {
            return Cow::Borrowed(command);
        };
        // A task that has no row has moved on, which the decision finds out.
        if !slice.knows(*task) {
            return Cow::Borrowed(command);
        }
        let checks = self.get(slice.run().version, slice.graph(), &slice.spec(*task).kind);
        let result = checks.map(|checks| {
            checks?.check_output(output).map_err(|error| Failure::permanent(error.to_string()))
        });
        match result {
            None | Some(Ok(())) => Cow::Borrowed(command),
            Some(Err(failure)) => Cow::Owned(Command::Report {
                task: *task,
                attempt: *attempt,
                worker: *worker,
                started_at: *started_at,
                result: TaskResult::Failed(failure),
            }),
        }
    }
}
