//! Why a page is not shown, as a page.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use host::Problem;
use serde_json::Value;

use crate::ask::part;
use crate::shell::Shell;
use crate::show;

/// Why something is not shown or not done.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) details: Value,
    /// Where to go instead: to sign in.
    pub(crate) instead: Option<String>,
}

impl Refused {
    /// The reader must sign in first, and then returns to that page.
    pub(crate) fn sign_in(to: &str) -> Self {
        let instead = Some(format!("/sign-in?to={}", part(to)));
        Self { status: StatusCode::SEE_OTHER, message: String::new(), details: Value::Null, instead }
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    shell: Shell,
    status: StatusCode,
    message: String,
    advice: &'static str,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let (status, message) = (problem.status(), problem.message().to_owned());
        Self { status, message, details: Value::Null, instead: None }
    }
}

impl From<read::Error> for Refused {
    fn from(error: read::Error) -> Self {
        Problem::from(error).into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        if let Some(location) = self.instead {
            return Redirect::to(&location).into_response();
        }
        let status = self.status;
        let advice = match status {
            StatusCode::NOT_FOUND => "It may have been deleted by retention, or the address is wrong.",
            StatusCode::UNAUTHORIZED => "Send a valid token: Authorization: Bearer …",
            StatusCode::FORBIDDEN => "Ask someone with access, or sign in with another account.",
            StatusCode::BAD_REQUEST => "Check the address and the form.",
            StatusCode::SERVICE_UNAVAILABLE => {
                "A dependency is unavailable. Runs continue by themselves; try again in a moment."
            }
            _ => "The log has the details.",
        };
        let page = RefusedPage { shell: Shell::bare(), status, message: self.message, advice };
        let mut response = (status, show::html(&page)).into_response();
        let extra = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        response.headers_mut().extend(extra.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}
