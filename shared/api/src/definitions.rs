//! Definitions as they are sent: one workflow as YAML or JSON, or several files that belong together.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use host::Problem;
use runtime::{Definition, FileKind, SourceFile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::request::{Text, check_type, parse};

/// What definitions may come as.
const KINDS: [&str; 5] =
    ["application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/plain"];

/// The path of a single workflow in error messages.
const BODY: &str = "body";

/// Files that are compiled together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// The files, in any order.
    pub files: Vec<File>,
}

/// One file of definitions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its path, which error messages name.
    pub path: String,
    /// The kind of definition in it.
    #[serde(default)]
    pub kind: Kind,
    /// The content, in YAML.
    pub text: String,
}

/// What a file defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The definition of a workflow.
    #[default]
    Workflow,
    /// A task that workflows can reuse.
    Task,
    /// A template that workflows are made from.
    Template,
}

impl From<File> for SourceFile {
    fn from(file: File) -> Self {
        let kind = match file.kind {
            Kind::Workflow => FileKind::Workflow,
            Kind::Task => FileKind::Task,
            Kind::Template => FileKind::Template,
        };
        Self { path: file.path, kind, text: file.text }
    }
}

impl From<SourceFile> for File {
    fn from(file: SourceFile) -> Self {
        let kind = match file.kind {
            FileKind::Workflow => Kind::Workflow,
            FileKind::Task => Kind::Task,
            FileKind::Template => Kind::Template,
        };
        Self { path: file.path, kind, text: file.text }
    }
}

/// The sound definitions that a body holds. A body with any problem in it is refused with all of them.
pub struct Definitions(pub Vec<Definition>);

impl<S: Send + Sync> FromRequest<S> for Definitions {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_type(request.headers(), &KINDS)?;
        let is_json = is_json_type(request.headers());
        let Text(text) = Text::from_request(request, state).await?;
        let files = read(text, is_json)?;
        // A large file takes long enough to hold up others.
        let compiled = tokio::task::spawn_blocking(move || runtime::compile(&files)).await;
        let problems = match compiled.map_err(|error| Problem::internal(&error))? {
            Ok(definitions) => return Ok(Self(definitions)),
            Err(problems) => problems,
        };
        let message = match problems.as_slice() {
            [only] => only.to_string(),
            several => format!("{} problems, the first one: {}", several.len(), several[0]),
        };
        let refused = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_definition", message);
        Err(refused.with(json!(problems)))
    }
}

/// The JSON Schemas of the files that can be registered, by name.
pub fn schemas() -> impl Iterator<Item = (&'static str, Value)> {
    runtime::schemas()
}

fn is_json_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The files in a body. JSON is YAML too, so only a list of files needs to be recognised.
fn read(text: String, is_json: bool) -> Result<Vec<SourceFile>, Problem> {
    let json: Option<Value> = if is_json { Some(parse(&text)?) } else { serde_json::from_str(&text).ok() };
    if json.is_some_and(|json| json.get("files").is_some()) {
        let files: Files = parse(&text)?;
        return Ok(files.files.into_iter().map(SourceFile::from).collect());
    }
    if text.trim().is_empty() {
        return Err(Problem::bad_request(
            "the body is empty: send a workflow as YAML, or `{\"files\": […]}`",
        ));
    }
    Ok(vec![SourceFile { path: BODY.into(), kind: FileKind::Workflow, text }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_files_is_recognised_by_its_field_whatever_the_content_type() {
        for (kind, meant) in [("task", FileKind::Task), ("template", FileKind::Template)] {
            let body =
                format!(r#"{{"files": [{{"path": "x/a.yaml", "kind": "{kind}", "text": "name: a"}}]}}"#);
            for is_json in [true, false] {
                let files = read(body.clone(), is_json).unwrap();
                assert_eq!((files[0].path.as_str(), files[0].kind), ("x/a.yaml", meant));
            }
        }
    }

    #[test]
    fn anything_else_is_one_workflow() {
        for (body, is_json) in
            [("name: hello", false), (r#"{"name": "hello"}"#, false), (r#"{"name": "hello"}"#, true)]
        {
            let files = read(body.into(), is_json).unwrap();
            assert_eq!((files[0].path.as_str(), files[0].text.as_str()), (BODY, body));
        }
    }

    #[test]
    fn what_claims_to_be_json_must_be() {
        assert!(read("name: hello".into(), true).is_err());
        assert!(read("  ".into(), false).is_err());
    }
}
