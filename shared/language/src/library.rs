//! The reusable tasks that workflows refer to by `task:`.

use std::collections::BTreeMap;

use crate::FileKind;
use crate::compile::Document;
use crate::diagnostic::Report;
use crate::node::Node;
use crate::read::Word;
use crate::schema::{self, Extent};
use crate::task::TaskParts;
use crate::template;
use crate::types::TaskType;

/// Every reusable task by name; none where its file has problems of its own.
#[derive(Default)]
pub(crate) struct Library<'n> {
    tasks: BTreeMap<&'n str, Option<TaskParts<'n>>>,
}

impl<'n> Library<'n> {
    /// Reads every task file.
    pub(crate) fn read(documents: &'n [Document<'n>], report: &mut Report<'_>) -> Self {
        let mut library = Self::default();
        for document in documents.iter().filter(|document| document.file.kind == FileKind::Task) {
            let before = report.len();
            let parts = document.root.as_ref().and_then(|root| read_root(document, root, report));
            let name = parts.as_ref().and_then(|parts| parts.name).map_or(document.stem(), |name| name.text);
            if let (Some(Some(first)), Some(again)) = (library.tasks.get(name), &parts) {
                let message =
                    format!("the reusable task `{name}` is already defined in {}", report.location(first.at));
                report.add(again.at, message, Some("rename one of the two".to_owned()));
                continue;
            }
            library.tasks.insert(name, parts.filter(|_| document.clean && report.len() == before));
        }
        library
    }

    /// The reusable task of that name; why there is none is reported.
    pub(crate) fn find(&self, name: Word<'_>, report: &mut Report<'_>) -> Option<&TaskParts<'n>> {
        match self.tasks.get(name.text) {
            Some(Some(task)) => Some(task),
            Some(None) => {
                let hint = Some("fix the problems in its own file first".to_owned());
                report.add(name.at, format!("the reusable task `{}` cannot be used", name.text), hint);
                None
            }
            None => {
                let hint = report
                    .suggest(name.text, self.tasks.keys().copied())
                    .or_else(|| Some(format!("define it in tasks/{}.yaml", name.text)));
                report.add(name.at, format!("there is no reusable task `{}`", name.text), hint);
                None
            }
        }
    }
}

fn read_root<'n>(document: &Document<'_>, root: &'n Node, report: &mut Report<'_>) -> Option<TaskParts<'n>> {
    let parts = TaskParts::read_reusable(root, report)?;
    if let Some(name) = parts.name {
        document.check_name(name, report);
    }
    if let (Some(kind), Some(config)) = (parts.kind, &parts.config) {
        let schema = &TaskType::of(kind).schema;
        report.extend(schema::check(schema, config, kind.name(), Extent::Part, &report.budget));
        // Names are checked where the task is used: which exist depends on the workflow.
        template::check_config(config, TaskType::of(kind), None, report);
    }
    parts.callbacks.iter().for_each(|callback| callback.check(None, report));
    Some(parts)
}
