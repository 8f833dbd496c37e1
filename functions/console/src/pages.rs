//! The pages: runs, one run, one log.

use std::fmt::Write;

use api::page::{MAX_LIMIT, Page};
use api::request::{Path, Query};
use api::views::{RunView, TaskView};
use api::{Api, Caller, logs, runs, tasks};
use askama::Template;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use model::{RunId, RunState};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use service::Problem;
use store::LogLine;

use crate::reader::Reader;
use crate::show;

/// So many pages of a log are put on one of ours.
const LOG_PAGES: usize = 10;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    query: runs::ListQuery,
    page: Page<RunView>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    run: RunView,
    /// The fan-out whose children are shown instead of the tasks of the definition.
    children_of: Option<String>,
    tasks: Page<TaskView>,
    has_child_runs: bool,
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    status: StatusCode,
    advice: &'static str,
}

/// Why a page is not shown, as a page.
pub(crate) enum Refused {
    /// In words.
    Problem(Problem),
    /// Whoever asks must sign in first, there.
    SignIn(String),
}

impl Refused {
    /// Whoever asks must sign in first, and then comes back to that page.
    pub(crate) fn sign_in(to: &str) -> Self {
        Self::SignIn(format!("/sign-in?to={}", utf8_percent_encode(to, NON_ALPHANUMERIC)))
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let answer = match self {
            Self::Problem(problem) => problem.into_response(),
            Self::SignIn(place) => return Redirect::to(&place).into_response(),
        };
        let status = answer.status();
        let advice = match status {
            StatusCode::NOT_FOUND => "There is no such run or task here.",
            StatusCode::UNAUTHORIZED => "Send a token that is believed here: Authorization: Bearer …",
            StatusCode::FORBIDDEN => "You may not see or do this: ask an admin of your tenant for a role.",
            StatusCode::BAD_REQUEST => "The address is not understood: check its filters.",
            StatusCode::SERVICE_UNAVAILABLE => {
                "Something that is needed for it is away. Try again in a moment."
            }
            _ => "It is in the log.",
        };
        let mut response = (status, html(&RefusedPage { status, advice })).into_response();
        for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
            if let Some(value) = answer.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}

type Answer<T> = Result<T, Refused>;

pub(crate) async fn runs(
    State(api): State<Api>,
    Reader(caller): Reader,
    query: Result<Query<runs::ListQuery>, Problem>,
) -> Answer<Html<String>> {
    let Query(mut query) = query?;
    // A form sends fields that were left empty, too.
    query.workflow = query.workflow.filter(|workflow| !workflow.is_empty());
    query.state = query.state.filter(|state| !state.is_empty());
    let page = runs::list(&api, &caller, &query).await?;
    Ok(html(&RunsPage { query, page }))
}

pub(crate) async fn run(
    State(api): State<Api>,
    Reader(caller): Reader,
    id: Result<Path<RunId>, Problem>,
    query: Result<Query<tasks::ListQuery>, Problem>,
) -> Answer<Html<String>> {
    let (Path(id), Query(query)) = (id?, query?);
    let run = runs::show(&api, &caller, id).await?;
    let query = tasks::ListQuery { limit: query.limit.or(Some(MAX_LIMIT)), ..query };
    let tasks = tasks::list(&api, &caller, id, &query).await?;
    let one = runs::ListQuery { parent: Some(id), limit: Some(1), ..runs::ListQuery::default() };
    let has_child_runs = !runs::list(&api, &caller, &one).await?.items.is_empty();
    Ok(html(&RunPage { run, children_of: query.parent, tasks, has_child_runs }))
}

pub(crate) async fn log(
    State(api): State<Api>,
    Reader(caller): Reader,
    place: Result<Path<(RunId, String)>, Problem>,
    query: Result<Query<logs::LogQuery>, Problem>,
) -> Answer<Response> {
    let (Path((id, task)), Query(query)) = (place?, query?);
    let page = long_page(&api, &caller, id, &task, query).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text(&page)).into_response())
}

/// Many pages of a log as one.
async fn long_page(
    api: &Api,
    caller: &Caller,
    id: RunId,
    task: &str,
    query: logs::LogQuery,
) -> Result<Page<LogLine>, Problem> {
    let mut query = logs::LogQuery { limit: Some(MAX_LIMIT), ..query };
    let mut items = Vec::new();
    for _ in 0..LOG_PAGES {
        let page = logs::list(api, caller, id, task, &query).await?;
        items.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    Ok(Page { items, next_cursor: query.cursor })
}

fn text(page: &Page<LogLine>) -> String {
    let mut text = String::new();
    for line in &page.items {
        writeln!(text, "{} {:<6} {}", show::time(&line.at), line.stream, line.line)
            .expect("a text takes all");
    }
    match &page.next_cursor {
        Some(cursor) => text + &format!("… there is more: add ?cursor={cursor} to the address\n"),
        None if text.is_empty() => "no lines yet\n".into(),
        None => text,
    }
}

pub(crate) fn html(page: &impl Template) -> Html<String> {
    Html(page.render().expect("templates are checked when compiled, and a text takes all"))
}
