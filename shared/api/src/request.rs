//! Paths, queries and bodies as handlers take them. Invalid ones are refused with an error in one shape.

mod objects;

use axum::extract::{FromRequest, FromRequestParts, OriginalUri, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use host::{Problem, read_body};
use model::json_error;
use serde::de::DeserializeOwned;

use crate::BODY_LIMIT;

/// The resources that the path names.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|_| {
            let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |OriginalUri(uri)| uri);
            let message =
                format!("there is nothing at `{}`: a part of it is not a valid id or number", uri.path());
            Problem::not_found(message)
        })
    }
}

/// The query's parameters. Unknown ones are refused, so that a typo is not a silent default.
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query
            .map(|query| Self(query.0))
            .map_err(|error| Problem::bad_request(json_error::of_query(&error.body_text())))
    }
}

/// No reason is longer, in characters.
const MAX_REASON: usize = 1_000;

/// A JSON body; a missing body counts as an empty object.
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_type(request.headers(), &["application/json"])?;
        let Text(text) = Text::from_request(request, state).await?;
        parse(if text.trim().is_empty() { "{}" } else { &text }).map(Self)
    }
}

/// The content type that curl sends by default, which says nothing about the body.
const UNSPECIFIED: &str = "application/x-www-form-urlencoded";

/// Refuses content types other than these; a body without one is taken for the first.
pub(crate) fn check_type(headers: &HeaderMap, known: &[&str]) -> Result<(), Problem> {
    let Some(sent) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let sent = sent.to_str().unwrap_or_default();
    let kind = sent.split(';').next().unwrap_or_default().trim();
    if known.iter().chain([&UNSPECIFIED]).any(|known| kind.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let message = format!("unsupported content type `{kind}`; expected {}", known.join(" or "));
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
}

/// A body of any text.
pub struct Text(pub String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read_body(request.into_body(), BODY_LIMIT).await?;
        String::from_utf8(bytes.into())
            .map(Self)
            .map_err(|error| Problem::bad_request(format!("the body is not UTF-8: {}", error.utf8_error())))
    }
}

/// A reason, limited to the length that an event should carry.
pub(crate) fn brief<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = serde::Deserialize::deserialize(from)?;
    match text.as_deref().map(|text| text.chars().count()) {
        Some(length) if length > MAX_REASON => {
            let message = format!("`reason` has {length} characters; the maximum is {MAX_REASON}");
            Err(serde::de::Error::custom(message))
        }
        _ => Ok(text),
    }
}

/// A value out of JSON text, or what is wrong with it and at which line and column.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let parsed =
        serde_json::from_str(text).map_err(|error| Problem::bad_request(json_error::of_body(&error)))?;
    objects::check::<T>(text).map_err(|error| Problem::bad_request(json_error::of_body(&error)))?;
    Ok(parsed)
}
