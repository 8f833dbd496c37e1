//! Results as JUnit XML for CI.

use std::fmt::Display;

use super::{Results, Tested};

/// The document: a suite for each file; a file that could not be run is a suite with an error.
pub(super) fn document(results: &Results) -> String {
    let suites: Vec<String> =
        results.tested.chunk_by(|one, other| one.file == other.file).map(suite).collect();
    let problems = results.invalid_workflows.iter().chain(&results.invalid_tests).map(ToString::to_string);
    let broken: Vec<String> =
        problems.chain(results.not_run.iter().cloned()).map(|message| error(&message)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}{}</testsuites>\n",
        results.tested.len() + broken.len(),
        results.failed(),
        broken.len(),
        suites.concat(),
        broken.concat(),
    )
}

fn suite(tests: &[Tested]) -> String {
    let failures = tests.iter().filter(|test| !test.problems.is_empty()).count();
    let seconds: f64 = tests.iter().map(|test| test.took.as_seconds_f64()).sum();
    let cases: String = tests.iter().map(case).collect();
    let name = tests.first().map_or("", |test| &test.file);
    format!(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" time=\"{seconds:.6}\">\n{cases}  </testsuite>\n",
        escape(name),
        tests.len(),
    )
}

fn case(test: &Tested) -> String {
    let start = format!(
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" time=\"{:.6}\"",
        escape(&test.workflow),
        escape(&test.name),
        escape(&test.file),
        test.took.as_seconds_f64(),
    );
    let Some(first) = test.problems.first() else { return format!("{start}/>\n") };
    let all: Vec<String> = test.problems.iter().map(ToString::to_string).collect();
    let (message, all) = (escape(&first.message), escape(all.join("\n")));
    format!("{start}>\n      <failure message=\"{message}\">{all}</failure>\n    </testcase>\n")
}

fn error(message: &str) -> String {
    let message = escape(message);
    format!(
        "  <testsuite name=\"files\" tests=\"1\" failures=\"0\" errors=\"1\" time=\"0\">\n    <testcase classname=\"files\" \
         name=\"{message}\" time=\"0\">\n      <error message=\"{message}\"/>\n    </testcase>\n  </testsuite>\n"
    )
}

/// Escapes a text for XML content and attributes. Characters that XML cannot contain become �.
fn escape(text: impl Display) -> String {
    let mut escaped = String::new();
    for character in text.to_string().chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(
            escape("a < b && \"c\" > d\u{1b}[31m\n"),
            "a &lt; b &amp;&amp; &quot;c&quot; &gt; d\u{fffd}[31m&#10;"
        );
    }
}
