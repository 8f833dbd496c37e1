//! Definitions as they are sent: one workflow as YAML or JSON, or several files that belong together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use host::Problem;
use model::Queues;
use runtime::{Definition, Diagnostic, FileKind, SourceFile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::Api;
use crate::error::MAX_PROBLEMS;
use crate::request::{Text, check_type, parse};

/// The accepted forms of definitions.
const KINDS: [&str; 5] =
    ["application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/plain"];

/// The path of a single workflow in error messages.
const BODY: &str = "body";

/// The maximum number of compilations at the same time, those that nobody waits for any more included: one may take much of the
/// memory of a function.
static COMPILERS: Semaphore = Semaphore::const_new(1);

/// Less than any request may take.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum length of each text of a problem, in characters.
const MAX_TEXT: usize = 500;

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
    /// Its path, which error messages name. A script is found by its path relative to the folder that contains `graphs`.
    pub path: String,
    /// The kind of definition in it.
    #[serde(default)]
    pub kind: Kind,
    /// The content: YAML, or the text of a script.
    pub text: String,
}

/// The kind of definition in a file.
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
    /// A task type that workers implement.
    Type,
    /// A queue that tasks may name.
    Queue,
    /// A file that a program consists of: a script, the module of a function, a requirements file.
    Script,
}

impl From<File> for SourceFile {
    fn from(file: File) -> Self {
        let kind = match file.kind {
            Kind::Workflow => FileKind::Workflow,
            Kind::Task => FileKind::Task,
            Kind::Template => FileKind::Template,
            Kind::Type => FileKind::Type,
            Kind::Queue => FileKind::Queue,
            Kind::Script => FileKind::Script,
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
            FileKind::Type => Kind::Type,
            FileKind::Queue => Kind::Queue,
            FileKind::Script => Kind::Script,
        };
        Self { path: file.path, kind, text: file.text }
    }
}

/// The sound definitions that a body holds. A body with any problem in it is refused with all of them.
pub struct Definitions(pub Vec<Definition>);

impl FromRequest<Api> for Definitions {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Api) -> Result<Self, Problem> {
        check_type(request.headers(), &KINDS)?;
        let is_json = is_json_type(request.headers());
        let Text(text) = Text::from_request(request, state).await?;
        let files = read(text, is_json)?;
        let problems = match compile(state.access.queues().clone(), files).await? {
            Ok(definitions) => return Ok(Self(definitions)),
            Err(problems) => problems,
        };
        let count: usize = problems.iter().map(|problem| problem.count).sum();
        let first = Diagnostic::first(problems, MAX_PROBLEMS);
        let shown: Vec<Diagnostic> = first.into_iter().map(brief).collect();
        let message = match shown.as_slice() {
            [only] => only.to_string(),
            several => format!("{count} problems, the first one: {}", several[0]),
        };
        let refused = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_definition", message);
        Err(refused.with(json!(shown)))
    }
}

/// Compiles files. The compiler asks whether to stop before each file and task. The time for one of these is linear in its size,
/// which is limited: far less than what is left of the request's time then.
async fn compile(
    queues: Queues,
    files: Vec<SourceFile>,
) -> Result<Result<Vec<Definition>, Vec<Diagnostic>>, Problem> {
    limited(&COMPILERS, move |stop| runtime::compile(&queues, &files, stop)).await
}

/// Computes on a thread of its own, since a large file takes long enough to hold up others. When the time is up, or the request
/// is given up, the work is asked to stop.
async fn limited<T: Send + 'static>(
    permits: &'static Semaphore,
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Problem> {
    let computed = async {
        let permit = permits.acquire().await;
        let stop = StopOnDrop::default();
        let stopped = stop.0.clone();
        tokio::task::spawn_blocking(move || {
            // Held until the work ends, which may be after its request.
            let _permit = permit;
            work(&|| stopped.load(Ordering::Acquire))
        })
        .await
    };
    match tokio::time::timeout(COMPILE_TIMEOUT, computed).await {
        Ok(computed) => computed.map_err(|error| Problem::internal(&error)),
        Err(_) => {
            let seconds = COMPILE_TIMEOUT.as_secs();
            Err(Problem::unavailable(format!(
                "the definitions took longer than {seconds} s to check; send fewer at a time"
            )))
        }
    }
}

/// Tells the compiler that nobody waits for its result.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The problem with long texts cut off: it repeats parts of the file.
fn brief(problem: Diagnostic) -> Diagnostic {
    let cut = |text: String| match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let Diagnostic { file, path, message, hint, .. } = problem;
    let (file, path, message) = (cut(file), cut(path), cut(message));
    Diagnostic { file, path, message, hint: hint.map(cut), ..problem }
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
        for (kind, meant) in [("task", FileKind::Task), ("type", FileKind::Type), ("queue", FileKind::Queue)]
        {
            let body =
                format!(r#"{{"files": [{{"path": "x/a.yaml", "kind": "{kind}", "text": "name: a"}}]}}"#);
            for is_json in [true, false] {
                let files = read(body.clone(), is_json).unwrap();
                assert_eq!((files[0].path.as_str(), files[0].kind), ("x/a.yaml", meant));
            }
        }
    }

    #[tokio::test]
    async fn a_compilation_that_nobody_waits_for_stops() {
        let (started, starts) = std::sync::mpsc::channel();
        let stop = StopOnDrop::default();
        let stopped = stop.0.clone();
        let file = |name: usize| SourceFile {
            path: format!("{name}.yaml"),
            kind: FileKind::Workflow,
            text: format!("{{name: '{name}', tasks: [{{name: a, type: noop}}]}}"),
        };
        let files: Vec<SourceFile> = (0..100).map(file).collect();
        let compiling = tokio::task::spawn_blocking(move || {
            let mut files_left = 0;
            let asked = std::cell::Cell::new(0);
            let compiled = runtime::compile(&Queues::default(), &files, &|| {
                if asked.replace(asked.get() + 1) == 0 {
                    // The request is given up before the first file.
                    let _ = started.send(());
                    while !stopped.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                }
                stopped.load(Ordering::Acquire)
            });
            files_left += files.len() - compiled.map_or(0, |definitions| definitions.len());
            files_left
        });
        starts.recv().unwrap();
        drop(stop);
        assert_eq!(compiling.await.unwrap(), 100, "no file was compiled after that");
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_asked_to_stop_and_counts_until_it_ends() {
        let permits: &'static Semaphore = Box::leak(Box::new(Semaphore::new(1)));
        let (started, starts) = tokio::sync::oneshot::channel();
        let (end, ends) = std::sync::mpsc::channel();
        let request = tokio::spawn(limited(permits, move |stop| {
            let _ = started.send(());
            while !stop() {
                std::thread::yield_now();
            }
            let _ = ends.recv();
        }));
        starts.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(permits.available_permits(), 0, "it computes on");
        end.send(()).unwrap();
        let _permit = testkit::within_deadline("it ends", permits.acquire()).await.unwrap();
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
