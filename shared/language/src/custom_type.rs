//! Task types that users declare, each in a file of `types/`.
//!
//! A type names the settings and the output of work that workers outside do. Its tasks are checked as those of any other
//! type; the types that a workflow uses are part of its definition, and so of its hash.

mod bounds;
mod checks;

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{CustomType, TypeName};
use serde_json::{Value, json};

use crate::FileKind;
use crate::allowance;
use crate::compile::Document;
use crate::diagnostic::Report;
use crate::names;
use crate::node::{Node, Position};
use crate::queue::KnownQueues;
use crate::read::{self, Word};
use crate::shape::{self, Record, Shape, custom, node, record, required, text};
use crate::task::{Settings, TaskParts};
use crate::types::TaskType;

pub use checks::{OutputError, TypeChecks};

/// The maximum length of an icon: an emoji may be made of several characters.
const MAX_ICON: usize = 8;

record! {
    /// A file in `types/`.
    pub(crate) struct TypeParts<'n> as "a task type" {
        /// The type's name, the same as the file's: words with dots between them, such as `raster.validate`.
        name: Word<'n> = required(shape::name(&names::TYPE)),
        /// A description of the type, for people.
        description: Word<'n> = text(),
        /// A sign for lists: a letter or an emoji.
        icon: Word<'n> = icon(),
        /// The JSON Schema of the settings; without one there are none.
        config: &'n Node = node(any_schema),
        /// The JSON Schema of the output; without one, every output is accepted.
        output: &'n Node = node(any_schema),
        ..settings: Settings,
    }
}

fn any_schema() -> Value {
    json!({"type": "object"})
}

fn icon<'n>() -> impl Shape<'n, Value = Word<'n>> {
    let read = |node: &'n Node, report: &mut Report<'_>| {
        let icon = read::text(node, report)?;
        if icon.text.chars().count() > MAX_ICON {
            let hint = Some("use a letter or an emoji".to_owned());
            report.add(icon.at, format!("an icon has at most {MAX_ICON} characters"), hint);
        }
        Some(icon)
    };
    custom(read, || json!({"type": "string", "minLength": 1, "maxLength": MAX_ICON}))
}

/// A task type that a file declares.
#[derive(Debug)]
pub(crate) struct DeclaredType<'n> {
    at: &'n Position,
    pub(crate) task_type: TaskType,
    pub(crate) settings: Settings,
    pub(crate) checks: TypeChecks,
    name: TypeName,
    custom: CustomType,
    /// What each workflow that uses it takes.
    weight: usize,
}

impl DeclaredType<'_> {
    /// The name that tasks write as their type.
    pub(crate) fn name(&self) -> &TypeName {
        &self.name
    }
}

/// Every custom task type by name; none where its file has problems of its own.
#[derive(Default)]
pub(crate) struct CustomTypes<'n>(BTreeMap<&'n str, Option<Rc<DeclaredType<'n>>>>);

impl<'n> CustomTypes<'n> {
    /// Reads every file of a task type.
    pub(crate) fn read(
        documents: &'n [Document<'n>],
        queues: &KnownQueues<'_>,
        report: &mut Report<'_>,
    ) -> Self {
        let mut types: BTreeMap<&str, Option<Rc<DeclaredType<'_>>>> = BTreeMap::new();
        for document in documents.iter().filter(|document| document.file.kind == FileKind::Type) {
            if report.is_stopped() {
                break;
            }
            let before = report.len();
            let read = document.root.as_ref().and_then(|root| read_file(document, root, queues, report));
            let (name, declared) = read.map_or((document.stem(), None), |(name, read)| (name.text, read));
            if let (Some(Some(first)), Some(again)) = (types.get(name), &declared) {
                let message =
                    format!("the task type `{name}` is already defined in {}", report.location(first.at));
                report.add(again.at, message, Some("rename one of the two".to_owned()));
                continue;
            }
            let is_valid = document.clean && report.len() == before;
            types.insert(name, declared.filter(|_| is_valid).map(Rc::new));
        }
        Self(types)
    }

    /// The type of that name; why there is none is reported.
    pub(crate) fn find(&self, name: Word<'_>, report: &mut Report<'_>) -> Option<Rc<DeclaredType<'n>>> {
        match self.0.get(name.text) {
            Some(Some(declared)) => Some(declared.clone()),
            Some(None) => {
                let hint = Some("fix the problems in its own file first".to_owned());
                report.add(name.at, format!("the task type `{}` cannot be used", name.text), hint);
                None
            }
            None => {
                let near = report.budget.nearest(name.text, self.0.keys().copied());
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("declare it in types/{}.yaml", name.text),
                };
                report.add(name.at, format!("unknown task type `{}`", name.text), Some(hint));
                None
            }
        }
    }

    /// What the language knows about each type.
    pub(crate) fn task_types(&self) -> Vec<TaskType> {
        self.0.values().flatten().map(|declared| declared.task_type.clone()).collect()
    }
}

/// Reads a file; none in the place of a type that cannot be checked.
fn read_file<'n>(
    document: &Document<'_>,
    root: &'n Node,
    queues: &KnownQueues<'_>,
    report: &mut Report<'_>,
) -> Option<(Word<'n>, Option<DeclaredType<'n>>)> {
    let parts = TypeParts::read(root, report)?;
    let name = parts.name?;
    document.check_name(name, report);
    let before = report.len();
    let config = parts.config.map_or_else(|| json!({}), |node| read_schema(node, report));
    let output = parts.output.map(|node| read_schema(node, report));
    let settings = parts.settings;
    let custom = CustomType {
        description: parts.description.map(|word| word.text.to_owned()),
        icon: parts.icon.map(|word| word.text.to_owned()),
        config: bounds::of_settings(config),
        output,
        queue: settings.queue.as_ref().map(|queue| queue.name.clone()),
        timeout_seconds: settings.timeout_seconds,
        max_retries: settings.retry_policy.as_ref().and_then(|policy| policy.max_retries),
    };
    settings.queue.iter().for_each(|queue| queues.check_pool(queue, report));
    if report.len() > before {
        return Some((name, None));
    }
    let declared = TypeName::new(name.text).and_then(|type_name| {
        let checks = match TypeChecks::compile(&type_name, &custom) {
            Ok(checks) => checks,
            Err(error) => {
                let part = if error.in_output { parts.output } else { parts.config };
                let at = part.map_or(&root.at, |node| checks::position(node, &error.pointer));
                report.add(at, error.to_string(), None);
                return None;
            }
        };
        let task_type = TaskType::custom(&type_name, &custom);
        let weight = allowance::weight(root);
        Some(DeclaredType { at: &root.at, task_type, settings, checks, name: type_name, custom, weight })
    });
    Some((name, declared))
}

/// The schema that a person wrote; what makes it unusable is reported.
fn read_schema(node: &Node, report: &mut Report<'_>) -> Value {
    let schema = node.to_json();
    for problem in bounds::problems(&schema) {
        report.add(checks::position(node, &problem.pointer), problem.message, problem.hint);
    }
    schema
}

/// The custom types that tasks, or the children of their fan-outs, are of.
pub(crate) fn used_by(tasks: &[TaskParts<'_>], report: &mut Report<'_>) -> BTreeMap<TypeName, CustomType> {
    let children = tasks.iter().filter_map(|task| task.fan_out.as_ref()?.task.as_deref());
    let mut used = BTreeMap::new();
    for task in tasks.iter().chain(children) {
        let Some(declared) = &task.declared else { continue };
        if !used.contains_key(&declared.name) && report.take(declared.weight, |_| task.at.clone()) {
            used.insert(declared.name.clone(), declared.custom.clone());
        }
    }
    used
}
