//! Workflow templates: workflows with parameters, which others extend.
//!
//! ```yaml
//! # templates/ingest.yaml                    # graphs/ingest-orders.yaml
//! name: ingest                               name: ingest-orders
//! parameters:                                extends: ingest
//!   source: {type: string, pattern: "^\\w+$"}  parameters: {source: orders}
//!   limit: {type: integer, default: 3}       tasks:
//! tasks:                                       - {name: fetch, timeout_seconds: 60}
//!   - name: fetch                              - {name: tell, type: noop, depends_on: [fetch]}
//!     type: bash
//!     config: {command: "fetch ${{ parameters.source }}"}
//! ```
//!
//! In code such a file is a blueprint, since a [template](crate::template) is `{{ … }}`. All of this is a pass over
//! trees: what comes out is a plain workflow whose every part knows the file it was written in, so the rest of the
//! compiler knows nothing of it, and its hash changes with the templates that it is made of.
//!
//! **Parameters** have the types of inputs, with `enum`, `pattern` (of texts; it may match anywhere, as in JSON
//! Schema), `minimum` and `maximum` (of numbers). One without a `default` is required; `required: true` states it explicitly.
//! A workflow gives them under `parameters`, or within `extends: {template: …, parameters: {…}}`, which is also how a
//! template gives them to another: its own `parameters` are what it declares. What it does not give stays open for
//! the file that extends it, and one that it declares again must fit both declarations.
//!
//! **`${{ parameters.NAME }}`** is where a value is put in. It looks different from `{{ … }}`, since it means another
//! time: the one is put in when files are compiled, the other when a task is dispatched. It needs no quotes after
//! `key: `, and Azure Pipelines writes its template parameters the same way, for the same purpose. Only this form is
//! taken: `${{ inputs.price }}` still is a dollar sign before a price. A value that is all of a text keeps its type;
//! within a longer text it is written out, lists and mappings as JSON. It is pasted even into commands, as its author
//! could have written the command; but it can never open a `{{ … }}`, which would be another's.
//!
//! **Extending.** The fields of the file that extends replace those of the template; nothing (`~`) takes one away, at any depth.
//! `inputs` and `defaults` are merged down to the fields of an input or of the retry policy. A task of a name that the
//! template has is laid over it: `config` and `retry_policy` are merged by key, as over a reusable task; another `type`
//! (or reusable `task`) also drops all that belonged to the old one. Other tasks are appended, and
//! `{name: …, remove: true}` takes one out.

mod draft;
pub(crate) mod extends;
mod lineage;
mod marker;
mod merge;
pub(crate) mod parameter;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::FileKind;
use crate::allowance;
use crate::compile::Document;
use crate::diagnostic::Report;
use crate::library::Library;
use crate::names;
use crate::node::{Data, Key, Node, Position};
use crate::read::{self, Word};
use crate::suggest;
use extends::Extends;
use parameter::Parameter;
use values::Values;

/// The fields of a template that are not inherited.
const OWN: [&str; 3] = ["name", "parameters", "extends"];
/// The fields that a workflow no longer needs once it has inherited.
const SPENT: [&str; 2] = ["parameters", "extends"];

/// Every workflow template by name; none where its file has problems of its own.
#[derive(Default)]
pub(crate) struct Blueprints<'n> {
    all: BTreeMap<&'n str, Option<Blueprint<'n>>>,
}

/// One workflow template, as its file defines it.
struct Blueprint<'n> {
    name: Word<'n>,
    root: &'n Node,
    /// What each workflow that extends it takes.
    weight: usize,
    parameters: Vec<Parameter<'n>>,
    base: Option<Extends<'n>>,
}

impl<'n> Blueprints<'n> {
    /// Reads every template file, each as far as it can be checked without the values of its parameters.
    pub(crate) fn read(
        documents: &'n [Document<'n>],
        library: &Library<'n>,
        report: &mut Report<'_>,
    ) -> Self {
        let mut blueprints = Self::default();
        for document in documents.iter().filter(|document| document.file.kind == FileKind::Template) {
            let before = report.len();
            let read =
                document.root.as_ref().and_then(|root| Blueprint::read(document, root, library, report));
            let name = read.as_ref().map_or(document.stem(), |blueprint| blueprint.name.text);
            if let (Some(Some(first)), Some(again)) = (blueprints.all.get(name), &read) {
                let first = report.location(first.name.at);
                let message = format!("the workflow template `{name}` is already defined in {first}");
                report.add(again.name.at, message, Some("rename one of the two".to_owned()));
                continue;
            }
            blueprints.all.insert(name, read.filter(|_| document.clean && report.len() == before));
        }
        blueprints.check_together(report);
        blueprints
    }

    /// The workflow with everything that it inherits. Without `extends` it is the tree as it was; none if it cannot
    /// be known what it inherits, which is reported.
    pub(crate) fn resolve<'r>(&self, root: &'r Node, report: &mut Report<'_>) -> Option<Cow<'r, Node>> {
        marker::refuse(root, report);
        let extends = field(root, "extends");
        if !misspelled(root, if extends.is_some() { "parameters" } else { "extends" }, report).is_empty() {
            return None;
        }
        let Some(extends) = extends else { return Some(Cow::Borrowed(root)) };
        report.heir = Some(root.at.file);
        let resolved = Extends::read_in_workflow(root, extends, report)
            .and_then(|extends| self.inherit(&extends, without(root, &SPENT), report));
        report.heir = None;
        resolved.map(Cow::Owned)
    }

    fn inherit(&self, extends: &Extends<'_>, own: Node, report: &mut Report<'_>) -> Option<Node> {
        if !self.can_extend(extends, report) {
            return None;
        }
        let before = report.len();
        let blueprint = self.get(extends.template.text)?;
        let lower = self.build(blueprint, extends.parameters, extends.at, report)?;
        let whole = merge::workflow(lower, own, report);
        (report.len() == before).then_some(whole)
    }

    /// What a template and those that it extends come to with the parameters given at `at`.
    fn build(
        &self,
        blueprint: &Blueprint<'n>,
        given: &[(Key, Node)],
        at: &Position,
        report: &mut Report<'_>,
    ) -> Option<Node> {
        if !report.take(blueprint.weight, |_| at.clone()) {
            return None;
        }
        let values = Values::bind(blueprint.name.text, &self.open(blueprint), given, at, report)?;
        let own = values.fill(&without(blueprint.root, &OWN), report);
        let Some(extends) = &blueprint.base else { return Some(own) };
        let base = self.get(extends.template.text)?;
        let mut handed: Vec<(Key, Node)> = Vec::new();
        for (key, node) in extends.parameters {
            handed.push((key.clone(), values.fill(node, report)));
        }
        let left = self.open(base).into_iter().filter(|parameter| !extends.gives(parameter.name()));
        handed.extend(left.filter_map(|parameter| values.entry(parameter.name())));
        let lower = self.build(base, &handed, extends.at, report)?;
        Some(merge::workflow(lower, own, report))
    }

    /// The parameters that a file extending a template may give: its own, and what it leaves open of its base's.
    fn open<'b>(&'b self, blueprint: &'b Blueprint<'n>) -> Vec<&'b Parameter<'n>> {
        let mut open: Vec<&Parameter<'n>> = blueprint.parameters.iter().collect();
        if let Some(extends) = &blueprint.base {
            let base = self.get(extends.template.text).map(|base| self.open(base)).unwrap_or_default();
            let declared = |name: &str| blueprint.parameters.iter().any(|own| own.name() == name);
            let left =
                |parameter: &&Parameter<'n>| !extends.gives(parameter.name()) && !declared(parameter.name());
            open.extend(base.into_iter().filter(left));
        }
        open
    }

    fn get(&self, name: &str) -> Option<&Blueprint<'n>> {
        self.all.get(name)?.as_ref()
    }

    /// Checks what takes more than one file to know. A template with problems cannot be used.
    fn check_together(&mut self, report: &mut Report<'_>) {
        let mut broken = Vec::new();
        for blueprint in self.all.values().flatten() {
            let before = report.len();
            let is_usable = self.has_lineage(blueprint, report);
            if is_usable {
                self.check_names(blueprint, report);
            }
            if !is_usable || report.len() > before {
                broken.push(blueprint.name.text);
            }
        }
        for name in broken {
            self.all.insert(name, None);
        }
    }

    /// Reports parameters that are named and do not exist.
    fn check_names(&self, blueprint: &Blueprint<'n>, report: &mut Report<'_>) {
        let open = self.open(blueprint);
        let known: Vec<&str> = open.iter().map(|parameter| parameter.name()).collect();
        marker::check(&without(blueprint.root, &OWN), &known, report);
        let Some(extends) = &blueprint.base else { return };
        extends.parameters.iter().for_each(|(_, node)| marker::check(node, &known, report));
        if let Some(base) = self.get(extends.template.text) {
            let open = self.open(base);
            values::check_names(base.name.text, &open, extends.parameters, report);
        }
    }
}

impl<'n> Blueprint<'n> {
    fn read(
        document: &Document<'_>,
        root: &'n Node,
        library: &Library<'n>,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        if !matches!(root.data, Data::Map(_)) {
            let message = format!("a workflow template must be a mapping, but this is {}", root.describe());
            report.add(&root.at, message, None);
            return None;
        }
        let parameters = field(root, "parameters").filter(|node| !node.is_null());
        let parameters = parameters.map(|node| parameter::read(node, report)).unwrap_or_default();
        let base = field(root, "extends").map(|node| Extends::read(node, report));
        let misspelled = SPENT.map(|name| misspelled(root, name, report)).concat();
        draft::check(&without(root, &misspelled), library, report);
        let Some(name) = field(root, "name").filter(|node| !node.is_null()) else {
            report.add(&root.at, "the field `name` is missing", None);
            return None;
        };
        let name = read::text(name, report)?;
        names::check(name, &names::PLAIN, report);
        document.check_name(name, report);
        Some(Self { name, root, weight: allowance::weight(root), parameters, base: base.flatten() })
    }
}

/// The field of a mapping, whatever it holds.
fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.data {
        Data::Map(entries) => entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node),
        _ => None,
    }
}

/// Reports the fields that seem to be misspellings of an absent one. Returns their names.
fn misspelled<'n>(root: &'n Node, meant: &str, report: &mut Report<'_>) -> Vec<&'n str> {
    let Data::Map(entries) = &root.data else { return Vec::new() };
    if field(root, meant).is_some() {
        return Vec::new();
    }
    let keys = entries.iter().map(|(key, _)| key);
    let misspelled: Vec<&Key> = keys.filter(|key| suggest::nearest(&key.name, [meant]).is_some()).collect();
    for key in &misspelled {
        let hint = Some(format!("did you mean `{meant}`?"));
        report.add(&key.at, format!("unknown field `{}`", key.name), hint);
    }
    misspelled.into_iter().map(|key| key.name.as_str()).collect()
}

/// The tree without some of its fields.
fn without(root: &Node, fields: &[&str]) -> Node {
    let mut rest = root.clone();
    if let Data::Map(entries) = &mut rest.data {
        entries.retain(|(key, _)| !fields.contains(&key.name.as_str()));
    }
    rest
}
