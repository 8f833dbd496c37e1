//! Who reads a page, and who sends a form.

use api::{Api, Caller};
use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::{Problem, read_body};

use crate::pages::Refused;

/// No form is larger, in bytes.
const FORM_LIMIT: usize = 64 * 1024;

/// Whoever has a token or is signed in, and where pages are open, whoever sits at this machine.
pub(crate) struct Reader(pub(crate) Caller);

/// A form that was sent by a page of ours, and who sent it. What they may do is for the handler to ask.
///
/// Each form of a page holds what `Access::session` gives beside the session, in a hidden field `csrf`.
pub(crate) struct SentForm<T> {
    pub(crate) caller: Caller,
    pub(crate) fields: T,
}

impl FromRequestParts<Api> for Reader {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refused> {
        let known = api.access.session(parts, api.app.now()).is_some();
        if known || parts.headers.contains_key(header::AUTHORIZATION) {
            return Ok(Self(Caller::from_request_parts(parts, api).await?));
        }
        if !api.pages_open {
            return Err(unknown(parts, api).await);
        }
        // A web site can make its own name point here and then read what its visitor can read.
        if !is_local(parts) {
            let message = "open pages are read at localhost only: use that name, or send a token";
            return Err(Problem::unauthorized(message).into());
        }
        Ok(Self(Caller::local(auth::Role::Viewer)))
    }
}

/// Whoever reads a page and is not known is shown where to sign in.
async fn unknown(parts: &mut Parts, api: &Api) -> Refused {
    let problem = match api.access.caller(api, parts).await {
        Err(problem) => problem,
        Ok(_) => Problem::unauthorized("say who you are"),
    };
    match api.access.sessions().filter(|_| parts.method.is_safe()) {
        Some(_) => {
            let to = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            Refused::sign_in(to)
        }
        None => problem.into(),
    }
}

#[derive(Deserialize)]
struct Proof {
    csrf: Option<String>,
}

impl<T: DeserializeOwned> FromRequest<Api> for SentForm<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let body = read_body(body, FORM_LIMIT).await?;
        let session = api.access.session(&parts, api.app.now());
        let caller = match session.filter(|_| !parts.headers.contains_key(header::AUTHORIZATION)) {
            // Nobody can make a browser send a header: a token proves enough.
            None => Caller::from_request_parts(&mut parts, api).await?,
            Some((session, csrf)) => {
                let Proof { csrf: sent } = parse(&parts, &body).await?;
                if !sent.is_some_and(|sent| auth::same(&sent, &csrf)) {
                    let message = "the form is not one of this session: load the page again";
                    return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message).into());
                }
                api.access.visitor(api, &parts, session).await?
            }
        };
        Ok(Self { caller, fields: parse(&parts, &body).await? })
    }
}

async fn parse<T: DeserializeOwned>(parts: &Parts, body: &[u8]) -> Result<T, Problem> {
    let mut request = Request::new(Body::from(body.to_vec()));
    *request.method_mut() = parts.method.clone();
    *request.headers_mut() = parts.headers.clone();
    let form = Form::<T>::from_request(request, &()).await;
    form.map(|form| form.0).map_err(|error| Problem::bad_request(error.body_text()))
}

/// Whether the request names this machine itself.
fn is_local(parts: &Parts) -> bool {
    authority(parts).is_some_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}

/// The host that the request names.
pub(crate) fn authority(parts: &Parts) -> Option<Authority> {
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    named.and_then(|host| host.parse::<Authority>().ok()).or_else(|| parts.uri.authority().cloned())
}
