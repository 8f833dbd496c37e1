//! The list of the API's endpoints, from the OpenAPI document that the server publishes.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

const HEAD: &str = "<!-- Generated from the OpenAPI document by cli/tests/documents/endpoints.rs. -->

# API endpoints

A running instance serves the complete OpenAPI 3.1 document at `/api/v1/openapi.json` and shows it as a page at
`/api/v1/docs`; neither needs a token. [The API](api.md) explains what all endpoints have in common.
";

pub(crate) fn page() -> String {
    let mut subjects: BTreeMap<&str, BTreeMap<(&str, &str), String>> = BTreeMap::new();
    for (path, methods) in api::openapi::document()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let subject = operation["tags"][0].as_str().unwrap();
            subjects.entry(subject).or_default().insert((path, method), what(operation));
        }
    }
    let mut page = HEAD.to_owned();
    for (subject, endpoints) in subjects {
        write!(page, "\n## {}\n\n| endpoint | does |\n|---|---|\n", title(subject)).unwrap();
        for ((path, method), what) in endpoints {
            writeln!(page, "| `{} {path}` | {what} |", method.to_uppercase()).unwrap();
        }
    }
    page
}

fn what(operation: &Value) -> String {
    let (summary, description) = (operation["summary"].as_str().unwrap(), operation["description"].as_str());
    let text = description.map_or_else(|| summary.to_owned(), |text| format!("{summary}. {text}"));
    text.replace('\n', " ").replace('|', "\\|")
}

fn title(subject: &str) -> String {
    let words = subject.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
