//! What files share: the reusable tasks that workflows refer to by `task:`, custom task types, and queues.

use std::collections::BTreeMap;

use model::Queues;

use crate::FileKind;
use crate::compile::Document;
use crate::custom_type::CustomTypes;
use crate::diagnostic::Report;
use crate::node::Node;
use crate::queue::KnownQueues;
use crate::read::Word;
use crate::schema::{self, Extent};
use crate::task::TaskParts;
use crate::template;

/// Every reusable task by name; none where its file has problems of its own.
#[derive(Default)]
pub(crate) struct Library<'n> {
    queues: KnownQueues<'n>,
    types: CustomTypes<'n>,
    tasks: BTreeMap<&'n str, Option<TaskParts<'n>>>,
}

impl<'n> Library<'n> {
    /// Reads every file of a queue, of a task type, and then of a task.
    pub(crate) fn read(
        documents: &'n [Document<'n>],
        installed: Option<&'n Queues>,
        report: &mut Report<'_>,
    ) -> Self {
        let queues = KnownQueues::read(documents, installed, report);
        let types = CustomTypes::read(documents, &queues, report);
        let mut library = Self { queues, types, ..Self::default() };
        for document in documents.iter().filter(|document| document.file.kind == FileKind::Task) {
            let before = report.len();
            let parts =
                document.root.as_ref().and_then(|root| read_root(document, root, &library.types, report));
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

    /// The queues that tasks may name.
    pub(crate) fn queues(&self) -> &KnownQueues<'n> {
        &self.queues
    }

    /// The custom task types.
    pub(crate) fn types(&self) -> &CustomTypes<'n> {
        &self.types
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

fn read_root<'n>(
    document: &Document<'_>,
    root: &'n Node,
    types: &CustomTypes<'n>,
    report: &mut Report<'_>,
) -> Option<TaskParts<'n>> {
    let parts = TaskParts::read_reusable(root, types, report)?;
    if let Some(name) = parts.name {
        document.check_name(name, report);
    }
    if let (Some(task), Some(config)) = (parts.task_type(), &parts.config) {
        report.extend(schema::check(&task.schema, config, task.kind.name(), Extent::Part, &report.budget));
        // Names are checked where the task is used: which exist depends on the workflow.
        template::check_config(config, task, None, report);
    }
    parts.callbacks.iter().for_each(|callback| callback.check(None, report));
    Some(parts)
}
