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
    /// In words.
    pub(crate) message: String,
    /// For programs.
    pub(crate) details: Value,
    /// Where to go instead: to sign in.
    pub(crate) instead: Option<String>,
}

impl Refused {
    /// Whoever asks must sign in first, and then comes back to that page.
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        if let Some(place) = self.instead {
            return Redirect::to(&place).into_response();
        }
        let status = self.status;
        let advice = match status {
            StatusCode::NOT_FOUND => "It may have been deleted with age, or the address has a slip in it.",
            StatusCode::UNAUTHORIZED => "Send a token that is believed here: Authorization: Bearer …",
            StatusCode::FORBIDDEN => "Ask somebody who may, or sign in as another.",
            StatusCode::BAD_REQUEST => "The address is not understood: check its filters.",
            StatusCode::SERVICE_UNAVAILABLE => {
                "Something that is needed for it is away. Runs go on by themselves; try again in a moment."
            }
            _ => "It is in the log.",
        };
        let page = RefusedPage { shell: Shell::bare(), status, message: self.message, advice };
        let mut response = (status, show::html(&page)).into_response();
        let said = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        response.headers_mut().extend(said.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}
