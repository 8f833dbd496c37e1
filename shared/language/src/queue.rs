//! Queues: those that files of `queues/` declare, and those that the installation has. A task names one of them.

use std::collections::BTreeMap;

use model::{QueueKind, Queues};

use crate::FileKind;
use crate::compile::Document;
use crate::diagnostic::Report;
use crate::names;
use crate::node::{Node, Position};
use crate::read::Word;
use crate::shape::{self, Given, Record, Shape, choice, custom, given, record, required};

record! {
    /// A file in `queues/`.
    pub(crate) struct QueueParts<'n> as "a queue" {
        /// The queue's name, the same as the file's.
        name: Word<'n> = required(shape::name(&names::PLAIN)),
        /// Who executes its tasks: a `service` of the installation, for a few minutes at most, or a `pool` of workers
        /// (`ebb worker --queue NAME`), for as long as they take.
        kind: Given<'n, QueueKind> = required(given(choice(QueueKind::NAMES))),
    }
}

/// The queue that a task names, and where it does.
#[derive(Clone, Debug)]
pub(crate) struct NamedQueue {
    pub(crate) name: String,
    at: Position,
}

/// The name of a queue.
pub(crate) fn named<'n>() -> impl Shape<'n, Value = NamedQueue> {
    let name = shape::name(&names::PLAIN);
    let schema = name.schema();
    let read = move |node: &'n Node, report: &mut Report<'_>| {
        name.read(node, report).map(|word| NamedQueue { name: word.text.to_owned(), at: word.at.clone() })
    };
    custom(read, move || schema.clone())
}

/// The queues that tasks may name.
#[derive(Default)]
pub(crate) struct KnownQueues<'n> {
    /// What files declare; none where a file has problems of its own.
    declared: BTreeMap<&'n str, Option<QueueKind>>,
    /// What the installation has; none if that does not matter.
    installed: Option<&'n Queues>,
}

impl<'n> KnownQueues<'n> {
    /// Reads every file of a queue. Without an installation, every name is accepted.
    pub(crate) fn read(
        documents: &'n [Document<'n>],
        installed: Option<&'n Queues>,
        report: &mut Report<'_>,
    ) -> Self {
        let mut declared: BTreeMap<&str, Option<QueueKind>> = BTreeMap::new();
        for document in documents.iter().filter(|document| document.file.kind == FileKind::Queue) {
            let before = report.len();
            let Some(parts) = document.root.as_ref().and_then(|root| QueueParts::read(root, report)) else {
                declared.insert(document.stem(), None);
                continue;
            };
            let name = parts.name.map_or(document.stem(), |name| name.text);
            parts.name.iter().for_each(|name| document.check_name(*name, report));
            if let (Some(kind), Some(installed)) = (&parts.kind, installed) {
                check_installed(name, kind, installed, report);
            }
            if let (Some(word), true) = (parts.name, declared.contains_key(name)) {
                let message = format!("the queue `{name}` is declared twice");
                report.add(word.at, message, Some("remove one of the two files".to_owned()));
                continue;
            }
            let is_valid = document.clean && report.len() == before;
            declared.insert(name, parts.kind.and_then(|kind| kind.value).filter(|_| is_valid));
        }
        Self { declared, installed }
    }

    /// Whether workers lease the tasks of a queue; none if that is not known.
    pub(crate) fn is_leased(&self, name: &str) -> Option<bool> {
        let kind = match self.declared.get(name) {
            Some(declared) => *declared,
            None => self.installed?.kind(name),
        };
        kind.map(|kind| kind == QueueKind::Pool)
    }

    /// Reports a queue that does not exist, or that workers do not lease from.
    pub(crate) fn check_pool(&self, named: &NamedQueue, report: &mut Report<'_>) {
        self.check(named, report);
        if self.is_leased(&named.name) == Some(false) {
            let hint = format!("name another, or write `kind: pool` in queues/{}.yaml", named.name);
            report.add(
                &named.at,
                format!("workers do not lease from the queue `{}`", named.name),
                Some(hint),
            );
        }
    }

    /// Reports a queue that does not exist, or whose file has problems of its own.
    pub(crate) fn check(&self, named: &NamedQueue, report: &mut Report<'_>) {
        let (name, Some(installed)) = (named.name.as_str(), self.installed) else { return };
        match self.declared.get(name) {
            Some(Some(_)) => {}
            Some(None) => {
                let hint = Some("fix the problems in its own file first".to_owned());
                report.add(&named.at, format!("the queue `{name}` cannot be used"), hint);
            }
            None if installed.kind(name).is_some() => {}
            None => {
                let names = self.declared.keys().copied().chain(installed.names());
                let hint = match report.budget.nearest(name, names.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                        format!("use {}, or declare it in queues/{name}.yaml", names.join(" or "))
                    }
                };
                report.add(&named.at, format!("there is no queue `{name}`"), Some(hint));
            }
        }
    }
}

/// Reports a declaration that the installation contradicts.
fn check_installed(name: &str, given: &Given<'_, QueueKind>, installed: &Queues, report: &mut Report<'_>) {
    let Some(kind) = given.value else { return };
    match installed.fixed_kind(name) {
        Some(other) if other != kind => {
            let message = format!("the installation's queue `{name}` is of the kind `{}`", other.name());
            let hint = format!("write `kind: {}`, or give the queue another name", other.name());
            report.add(given.at, message, Some(hint));
        }
        None if kind == QueueKind::Service && installed.are_listed() => {
            let message = format!("no service of the installation executes the tasks of the queue `{name}`");
            let hint =
                "add it to the installation's queues, or write `kind: pool` and run workers".to_owned();
            report.add(given.at, message, Some(hint));
        }
        _ => {}
    }
}
