//! A server that speaks the JSON API of Google Cloud Tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use chrono::{DateTime, Duration, Utc};
use model::{Clock, Instant};
use serde_json::{Value, json};

type Answer = (StatusCode, Json<Value>);

/// A name is taken for this long after its task ran.
const NAME_TAKEN_FOR: Duration = Duration::hours(24);

/// How far ahead a task may be.
const MAX_AHEAD: Duration = Duration::days(30);

/// The pause before a task that failed runs again.
const BACKOFF: Duration = Duration::seconds(5);

/// Keeps the tasks of one queue in memory, and rejects what Google rejects. A test decides when tasks that are due run.
#[derive(Clone)]
pub struct CloudTasksServer {
    url: String,
    queue: String,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    /// When each task is due, and what it calls.
    waiting: BTreeMap<String, (Instant, String)>,
    /// When tasks that are gone ran.
    ran: BTreeMap<String, Instant>,
    requests: usize,
    rejections: Vec<String>,
    is_unavailable: bool,
}

impl CloudTasksServer {
    /// Starts a server with one queue: `projects/PROJECT/locations/REGION/queues/QUEUE`.
    pub async fn start(queue: &str, clock: impl Clock + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let server = Self { url, queue: queue.into(), clock: Arc::new(clock), state: Arc::default() };
        let router = Router::new().route("/v2/{*parent}", post(create)).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// The base URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// When the first task is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.kept().waiting.values().map(|(due_at, _)| *due_at).min()
    }

    /// The number of tasks that wait.
    pub fn waiting(&self) -> usize {
        self.kept().waiting.len()
    }

    /// The number of requests to create a task.
    pub fn requests(&self) -> usize {
        self.kept().requests
    }

    /// Why requests were rejected as invalid.
    pub fn rejections(&self) -> Vec<String> {
        self.kept().rejections.clone()
    }

    /// Loses all tasks that wait.
    pub fn lose_all(&self) {
        self.kept().waiting.clear();
    }

    /// Answers every request with 503, or as usual again.
    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.kept().is_unavailable = is_unavailable;
    }

    /// Runs the tasks that are due by now. A task that fails runs again later. Returns how many ran.
    pub async fn run_due(&self) -> usize {
        let now = self.clock.now();
        let due: Vec<(String, String)> = {
            let kept = self.kept();
            let due = kept.waiting.iter().filter(|(_, (due_at, _))| *due_at <= now);
            due.map(|(name, (_, url))| (name.clone(), url.clone())).collect()
        };
        for (name, url) in &due {
            let task = name.rsplit('/').next().unwrap_or_default();
            let queue = self.queue.rsplit('/').next().unwrap_or_default();
            let call = reqwest::Client::new()
                .post(url)
                .header("X-CloudTasks-TaskName", task)
                .header("X-CloudTasks-QueueName", queue);
            let is_done = call.send().await.is_ok_and(|response| response.status().is_success());
            let mut kept = self.kept();
            if is_done {
                kept.waiting.remove(name);
                kept.ran.insert(name.clone(), now);
            } else if let Some((due_at, _)) = kept.waiting.get_mut(name) {
                *due_at = now + BACKOFF;
            }
        }
        due.len()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn error(code: StatusCode, status: &str, message: &str) -> Answer {
    (code, Json(json!({"error": {"code": code.as_u16(), "message": message, "status": status}})))
}

async fn create(State(server): State<CloudTasksServer>, Path(path): Path<String>, body: String) -> Answer {
    let mut kept = server.kept();
    kept.requests += 1;
    if kept.is_unavailable {
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            "UNAVAILABLE",
            "The service is currently unavailable.",
        );
    }
    let Some(queue) = path.strip_suffix("/tasks").filter(|queue| *queue == server.queue) else {
        return error(StatusCode::NOT_FOUND, "NOT_FOUND", "Queue does not exist.");
    };
    let now = server.clock.now();
    match read(&body, queue, now) {
        Err(reason) => {
            kept.rejections.push(reason.clone());
            error(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", &reason)
        }
        Ok((name, _, _)) if kept.is_taken(&name, now) => {
            let message = "The task cannot be created because a task with this name existed too recently.";
            error(StatusCode::CONFLICT, "ALREADY_EXISTS", message)
        }
        Ok((name, due_at, url)) => {
            let created = json!({"name": name, "scheduleTime": due_at.to_rfc3339()});
            kept.waiting.insert(name, (due_at.max(now), url));
            (StatusCode::OK, Json(created))
        }
    }
}

impl Kept {
    fn is_taken(&self, name: &str, now: Instant) -> bool {
        let ran_lately = self.ran.get(name).is_some_and(|ran_at| now < *ran_at + NAME_TAKEN_FOR);
        self.waiting.contains_key(name) || ran_lately
    }
}

/// The name, the instant and the address of a valid task.
fn read(body: &str, queue: &str, now: Instant) -> Result<(String, Instant, String), String> {
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    only(&body, &["task", "responseView"])?;
    let task = &body["task"];
    only(task, &["name", "scheduleTime", "dispatchDeadline", "httpRequest"])?;
    let name = text(task, "name")?;
    let id = name.strip_prefix(&format!("{queue}/tasks/")).ok_or("Task name does not match its queue")?;
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if id.is_empty() || id.len() > 500 || !id.chars().all(is_allowed) {
        return Err(format!("Task ID `{id}` is not valid"));
    }
    let due_at = text(task, "scheduleTime")?;
    let due_at = DateTime::parse_from_rfc3339(due_at).map_err(|error| error.to_string())?.with_timezone(&Utc);
    if due_at > now + MAX_AHEAD {
        return Err("The scheduleTime is more than 30 days in the future".into());
    }
    let deadline = text(task, "dispatchDeadline")?.strip_suffix('s').and_then(|number| number.parse().ok());
    if !deadline.is_some_and(|seconds: u32| (15..=1800).contains(&seconds)) {
        return Err("The dispatchDeadline must be between 15s and 1800s".into());
    }
    let request = &task["httpRequest"];
    only(request, &["url", "httpMethod", "headers", "body", "oidcToken"])?;
    let url = text(request, "url")?;
    if !(url.starts_with("http://") || url.starts_with("https://")) || url.len() > 2083 {
        return Err(format!("`{url}` is not a valid HTTP URL"));
    }
    if text(request, "httpMethod")? != "POST" {
        return Err("HttpMethod has an unknown value".into());
    }
    only(&request["oidcToken"], &["serviceAccountEmail", "audience"])?;
    if !text(&request["oidcToken"], "serviceAccountEmail")?.contains('@') {
        return Err("The serviceAccountEmail is not an address".into());
    }
    Ok((name.to_owned(), due_at, url.to_owned()))
}

fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str, String> {
    object[field].as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("`{field}` is required"))
}

fn only(object: &Value, known: &[&str]) -> Result<(), String> {
    let fields = object.as_object().ok_or("an object is required")?;
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(format!("Invalid JSON payload received. Unknown name \"{field}\": Cannot find field."))
        }
        None => Ok(()),
    }
}
