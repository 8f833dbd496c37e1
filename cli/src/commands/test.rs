//! `ebb test`: runs workflow tests under virtual time, without a server.

mod junit;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use bus::SystemClock;
use chrono::TimeDelta;
use language::{Compilation, Diagnostic};
use model::Clock;
use serde::Serialize;
use serde_json::json;
use workflow_test::{Refusal, Suite, TestFile};

use super::{FAILED, USAGE};
use crate::args::{self, Shared};
use crate::files;
use crate::output::{self, Colour, Palette};

/// The result of one test.
#[derive(Serialize)]
struct Tested {
    file: String,
    workflow: String,
    name: String,
    problems: Vec<Diagnostic>,
    #[serde(rename = "milliseconds", serialize_with = "milliseconds")]
    took: TimeDelta,
}

/// The results of all tests.
#[derive(Default)]
struct Results {
    tested: Vec<Tested>,
    /// The problems that the workflow files have.
    invalid_workflows: Vec<Diagnostic>,
    /// Problems of test files.
    invalid_tests: Vec<Diagnostic>,
    /// Messages about test files whose workflow has problems.
    not_run: Vec<String>,
}

pub(super) async fn run(shared: &Shared, arguments: &args::Test) -> Result<ExitCode> {
    let mut results = Results::default();
    for (folder, tests) in files::read_tests(&arguments.paths)? {
        let workflows = files::read(&folder)?.compile();
        for file in tests.files {
            run_file(&file, &workflows, arguments.filter.as_deref(), &mut results).await;
        }
        results.invalid_tests.extend(tests.unreadable);
        results.invalid_workflows.extend(workflows.diagnostics);
    }
    if results.is_empty() {
        bail!("no tests found: tests are files in `tests/`, next to `graphs/`");
    }
    if let Some(path) = &arguments.junit {
        fs::write(path, junit::document(&results))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if shared.json {
        print_json(&results)?
    } else {
        print(&results)?
    }
    Ok(ExitCode::from(results.code()))
}

async fn run_file(file: &TestFile, workflows: &Compilation, filter: Option<&str>, results: &mut Results) {
    let suite = match Suite::read(file, workflows) {
        Ok(suite) => suite,
        Err(Refusal::File(problems)) => return results.invalid_tests.extend(problems),
        Err(Refusal::Workflow(name)) => {
            let message = format!("{}: not run, because the workflow `{name}` has problems", file.path);
            return results.not_run.push(message);
        }
    };
    let wanted =
        |name: &str| filter.is_none_or(|text| name.contains(text) || suite.workflow().contains(text));
    for test in suite.tests.iter().filter(|test| wanted(&test.name)) {
        let start = SystemClock.now();
        let problems = suite.run(test).await;
        results.tested.push(Tested {
            file: suite.path().to_owned(),
            workflow: suite.workflow().to_owned(),
            name: test.name.clone(),
            problems,
            took: SystemClock.now() - start,
        });
    }
}

impl Results {
    fn is_empty(&self) -> bool {
        self.tested.is_empty() && self.invalid_tests.is_empty() && self.not_run.is_empty()
    }

    fn failed(&self) -> usize {
        self.tested.iter().filter(|test| !test.problems.is_empty()).count()
    }

    fn code(&self) -> u8 {
        match (self.invalid_tests.is_empty(), self.invalid_workflows.is_empty() && self.failed() == 0) {
            (false, _) => USAGE,
            (true, false) => FAILED,
            (true, true) => 0,
        }
    }

    /// One line about all tests.
    fn summary(&self) -> String {
        let took: TimeDelta = self.tested.iter().map(|test| test.took).sum();
        let (passed, total) = (self.tested.len() - self.failed(), self.tested.len());
        let tests = if total == 1 { "test" } else { "tests" };
        let problems = self.invalid_workflows.len() + self.invalid_tests.len();
        let and = if problems > 0 { format!("; problems in files: {problems}") } else { String::new() };
        format!("{passed} of {total} {tests} passed in {}{and}", output::span(took))
    }
}

fn print(results: &Results) -> Result<()> {
    let palette = Palette::of_stdout();
    let mut file = "";
    for test in &results.tested {
        if test.file != file {
            file = &test.file;
            output::line(file)?;
        }
        let took = test.took.as_seconds_f64() * 1_000.0;
        let sign = match test.problems.is_empty() {
            true => palette.paint(Colour::Good, "ok    "),
            false => palette.paint(Colour::Bad, "FAILED"),
        };
        output::line(format!("  {sign} {} ({took:.1} ms)", test.name))?;
        for problem in &test.problems {
            output::line(format!("         {problem}"))?;
        }
    }
    for message in results.invalid_workflows.iter().chain(&results.invalid_tests) {
        output::line(message)?;
    }
    for message in &results.not_run {
        output::line(message)?;
    }
    let colour = if results.code() == 0 { Colour::Good } else { Colour::Bad };
    Ok(output::line(palette.paint(colour, results.summary()))?)
}

fn print_json(results: &Results) -> Result<()> {
    Ok(output::json(&json!({
        "passed": results.code() == 0,
        "tests": results.tested,
        "diagnostics": results.invalid_workflows.iter().chain(&results.invalid_tests).collect::<Vec<_>>(),
    }))?)
}

fn milliseconds<S: serde::Serializer>(took: &TimeDelta, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_seconds_f64() * 1_000.0)
}
