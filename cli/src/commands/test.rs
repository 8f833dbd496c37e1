//! `ebb test`: plays the tests of workflows here, under virtual time and without a server.

mod junit;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use chrono::TimeDelta;
use clock::{Clock, SystemClock};
use language::{Compilation, Diagnostic};
use serde::Serialize;
use serde_json::json;
use workflow_test::{Refusal, Suite, TestFile};

use super::{FAILED, MISUSED};
use crate::args::{self, Shared};
use crate::files;
use crate::output::{self, Colour, Palette};

/// What came of one test.
#[derive(Serialize)]
struct Played {
    file: String,
    workflow: String,
    name: String,
    problems: Vec<Diagnostic>,
    #[serde(rename = "milliseconds", serialize_with = "milliseconds")]
    took: TimeDelta,
}

/// What came of all of them.
#[derive(Default)]
struct Results {
    played: Vec<Played>,
    /// The workflows' own problems.
    unsound: Vec<Diagnostic>,
    /// Problems of test files.
    unusable: Vec<Diagnostic>,
    /// Test files whose workflow has problems, in words.
    unplayed: Vec<String>,
}

pub(super) async fn run(shared: &Shared, arguments: &args::Test) -> Result<ExitCode> {
    let mut results = Results::default();
    for (folder, tests) in files::read_tests(&arguments.paths)? {
        let workflows = language::compile(&files::read(&folder)?);
        for file in tests {
            play(&file, &workflows, arguments.filter.as_deref(), &mut results).await;
        }
        results.unsound.extend(workflows.diagnostics);
    }
    if results.is_empty() {
        bail!("there is no such test: tests are files in `tests/`, beside `graphs/`");
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

async fn play(file: &TestFile, workflows: &Compilation, filter: Option<&str>, results: &mut Results) {
    let suite = match Suite::read(file, workflows) {
        Ok(suite) => suite,
        Err(Refusal::File(problems)) => return results.unusable.extend(problems),
        Err(Refusal::Workflow(name)) => {
            let words = format!("{}: not played, since the workflow `{name}` has problems", file.path);
            return results.unplayed.push(words);
        }
    };
    let wanted =
        |name: &str| filter.is_none_or(|text| name.contains(text) || suite.workflow().contains(text));
    for test in suite.tests.iter().filter(|test| wanted(&test.name)) {
        let start = SystemClock.now();
        let problems = suite.run(test).await;
        results.played.push(Played {
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
        self.played.is_empty() && self.unusable.is_empty() && self.unplayed.is_empty()
    }

    fn failed(&self) -> usize {
        self.played.iter().filter(|test| !test.problems.is_empty()).count()
    }

    fn code(&self) -> u8 {
        match (self.unusable.is_empty(), self.unsound.is_empty() && self.failed() == 0) {
            (false, _) => MISUSED,
            (true, false) => FAILED,
            (true, true) => 0,
        }
    }

    /// All of it in a line.
    fn summary(&self) -> String {
        let took: TimeDelta = self.played.iter().map(|test| test.took).sum();
        let (passed, total) = (self.played.len() - self.failed(), self.played.len());
        let tests = if total == 1 { "test" } else { "tests" };
        let problems = self.unsound.len() + self.unusable.len();
        let and = if problems > 0 { format!("; problems in files: {problems}") } else { String::new() };
        format!("{passed} of {total} {tests} passed in {}{and}", output::span(took))
    }
}

fn print(results: &Results) -> Result<()> {
    let palette = Palette::of_stdout();
    let mut file = "";
    for test in &results.played {
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
    for words in results.unsound.iter().chain(&results.unusable) {
        output::line(words)?;
    }
    for words in &results.unplayed {
        output::line(words)?;
    }
    let colour = if results.code() == 0 { Colour::Good } else { Colour::Bad };
    Ok(output::line(palette.paint(colour, results.summary()))?)
}

fn print_json(results: &Results) -> Result<()> {
    Ok(output::json(&json!({
        "passed": results.code() == 0,
        "tests": results.played,
        "diagnostics": results.unsound.iter().chain(&results.unusable).collect::<Vec<_>>(),
    }))?)
}

fn milliseconds<S: serde::Serializer>(took: &TimeDelta, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_seconds_f64() * 1_000.0)
}
