//! Reports the files of the watched folder that cannot be loaded.

use std::collections::BTreeMap;

use accounts::{Accounts, AuditEntry};
use api::audit::LOAD_DEFINITIONS;
use host::FileProblems;
use language::Diagnostic;
use model::{Instant, TenantId};
use serde_json::json;
use tracing::warn;

/// The maximum number of problems of one file in an audit entry.
const MAX_AUDITED: usize = 10;

/// Reports to the log, to the API and the console, and to the audit log.
pub(super) struct Reporter {
    accounts: Accounts,
    current: FileProblems,
}

impl Reporter {
    pub(super) fn new(accounts: Accounts, current: FileProblems) -> Self {
        Self { accounts, current }
    }

    /// Reports all problems that the files have now. The audit log gets an entry for each file with other problems than before.
    pub(super) async fn report(&self, problems: Vec<Diagnostic>, now: Instant) {
        for problem in &problems {
            warn!("{problem}");
        }
        let before = self.current.replace(problems.clone());
        let before = by_file(&before);
        for (file, problems) in by_file(&problems) {
            if before.get(file) != Some(&problems) {
                self.audit(file, problems, now).await;
            }
        }
    }

    async fn audit(&self, file: &str, problems: Vec<&Diagnostic>, now: Instant) {
        let problems = Diagnostic::first(problems.into_iter().cloned().collect(), MAX_AUDITED);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let entry = AuditEntry {
            tenant: TenantId::DEFAULT,
            at: now,
            actor: "ebb dev".to_owned(),
            origin: None,
            forwarded: None,
            agent: None,
            action: LOAD_DEFINITIONS.to_owned(),
            target: file.to_owned(),
            key: None,
            status: 422,
            before: None,
            after: Some(json!({"problems": texts})),
        };
        if let Err(error) = self.accounts.record(&entry).await {
            warn!("Cannot add the problems of {file} to the audit log: {error}");
        }
    }
}

fn by_file(problems: &[Diagnostic]) -> BTreeMap<&str, Vec<&Diagnostic>> {
    let mut files: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for problem in problems {
        files.entry(&problem.file).or_default().push(problem);
    }
    files
}
