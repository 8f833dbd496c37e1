//! What happens, as it happens, for pages that are open.

use api::access::Credentials;
use auth::Caller;
use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Uri};
use axum::response::Response;
use host::{Problem, ShutdownNotice};

use crate::refused::Refused;
use crate::visitor::Visitor;

/// The API's events for the reader of the page: a browser sends no token with an event stream.
pub(crate) async fn events(
    visitor: Visitor,
    stopping: Option<Extension<ShutdownNotice>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refused> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut request = Request::get(format!("/api/v1/events{query}"));
    // A browser that reconnects continues after its last event.
    if let Some(last) = headers.get("last-event-id") {
        request = request.header("last-event-id", last);
    }
    let credentials = match visitor.caller == Caller::local() {
        true => Credentials::local(),
        false => Credentials::of(&headers),
    };
    request = request.extension(credentials);
    if let Some(Extension(stopping)) = stopping {
        request = request.extension(stopping);
    }
    let request = request.body(Body::empty()).map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(visitor.ask.raw(request).await)
}
