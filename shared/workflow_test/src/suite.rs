//! A test file: one workflow and the tests of it.

use std::collections::BTreeSet;

use engine::Graph;
use language::document::{self, Key, Node, Position, Record, Report, TestFields, TestFileFields, hint};
use language::{Compilation, Diagnostic};
use model::Instant;
use serde_json::{Map, Value};

use crate::action::Action;
use crate::expect::Expect;
use crate::fixtures::Fixtures;
use crate::stub::Stubs;
use crate::{assertions, runner};

/// A test file as the caller read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestFile {
    /// The path as shown to people.
    pub path: String,
    /// The content, in YAML.
    pub text: String,
}

/// The valid tests of one file.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The tests, in the order of the file.
    pub tests: Vec<Test>,
    file: TestFile,
    fixtures: Fixtures,
}

/// One test: the inputs of a run, what happens to it, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Test {
    /// What it asserts, in words.
    pub name: String,
    pub(crate) at: Position,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) logical_date: Option<Instant>,
    pub(crate) now: Option<Instant>,
    pub(crate) stubs: Vec<Stubs>,
    pub(crate) actions: Vec<Action>,
    pub(crate) expect: Expect,
}

/// Why the tests of a file cannot be run.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// The workflow of this name has problems of its own.
    Workflow(String),
    /// The test file has these problems.
    File(Vec<Diagnostic>),
}

impl Suite {
    /// Reads a test file, given all workflows.
    pub fn read(file: &TestFile, workflows: &Compilation) -> Result<Self, Refusal> {
        let mut report = Report::on(&file.path, &file.text);
        let suite = document::parse(&mut report).map(|root| read_root(&root, workflows, &mut report));
        let problems = report.finish();
        match suite {
            Some(Err(refusal)) if problems.is_empty() => Err(refusal),
            Some(Ok(Some((fixtures, tests)))) if problems.is_empty() => {
                Ok(Self { tests, fixtures, file: file.clone() })
            }
            _ => Err(Refusal::File(problems)),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &str {
        &self.file.path
    }

    /// The name of the workflow.
    pub fn workflow(&self) -> &str {
        &self.fixtures.workflow().name
    }

    /// Runs a test of this suite. Returns every failed expectation.
    pub async fn run(&self, test: &Test) -> Vec<Diagnostic> {
        let mut report = Report::on(&self.file.path, &self.file.text);
        match runner::run(&self.fixtures, test).await {
            Ok(outcome) => assertions::check(test, &outcome, &mut report),
            Err(error) => report.add(&test.at, in_words(&error), None),
        }
        report.finish()
    }
}

/// Why a run could not be executed, nearly always because of its inputs.
fn in_words(error: &runtime::Error) -> String {
    match error {
        runtime::Error::BadInputs(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{error}: {}", problems.join("; "))
        }
        other => other.to_string(),
    }
}

type Parts = (Fixtures, Vec<Test>);

fn read_root(
    root: &Node,
    workflows: &Compilation,
    report: &mut Report<'_>,
) -> Result<Option<Parts>, Refusal> {
    let Some(fields) = TestFileFields::read(root, report) else { return Ok(None) };
    let (Some(name), Some(tests)) = (fields.workflow, fields.tests) else { return Ok(None) };
    let Some(definition) = workflows.definitions.iter().find(|found| found.workflow.name == name.text) else {
        if has_problems(name.text, workflows) {
            return Err(Refusal::Workflow(name.text.to_owned()));
        }
        let names = workflows.definitions.iter().map(|found| found.workflow.name.as_str());
        report.add(name.at, format!("there is no workflow `{}`", name.text), hint(name.text, names));
        return Ok(None);
    };
    let graph = Graph::compile(definition.workflow.clone()).expect("a valid definition has no cycles");
    let fixtures = Fixtures::of(definition, &workflows.definitions);
    let tests: Vec<Test> =
        tests.into_iter().filter_map(|node| Test::read(node, &graph, &fixtures, report)).collect();
    check_names(&tests, report);
    Ok(Some((fixtures, tests)))
}

/// Whether the workflow's own file, which is called like it, could not be compiled.
fn has_problems(workflow: &str, workflows: &Compilation) -> bool {
    workflows.diagnostics.iter().any(|problem| {
        let name = problem.file.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")) == Some(workflow)
    })
}

fn check_names(tests: &[Test], report: &mut Report<'_>) {
    let mut taken = BTreeSet::new();
    for test in tests.iter().filter(|test| !taken.insert(&test.name)) {
        let hint = Some("say in the name how it differs".to_owned());
        report.add(&test.at, format!("the test name `{}` is not unique", test.name), hint);
    }
}

impl Test {
    fn read(node: &Node, graph: &Graph, fixtures: &Fixtures, report: &mut Report<'_>) -> Option<Self> {
        let fields = TestFields::read(node, report)?;
        let stubs = Stubs::read(fields.tasks.unwrap_or_default(), fixtures, report);
        let actions = Action::read_all(&fields.meanwhile.unwrap_or_default(), graph, report);
        let expect = fields.expect.and_then(|node| Expect::read(node, fixtures, report));
        Some(Self {
            name: fields.name?.text.to_owned(),
            at: node.at.clone(),
            inputs: mapping(fields.inputs.unwrap_or_default()),
            logical_date: fields.logical_date,
            now: fields.now,
            stubs,
            actions,
            expect: expect?,
        })
    }
}

/// The values of a mapping, by name.
pub(crate) fn mapping(entries: &[(Key, Node)]) -> Map<String, Value> {
    entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
}
