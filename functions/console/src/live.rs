//! What happens, as it happens, for pages that are open.

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Uri};
use axum::response::Response;
use host::{Problem, ShutdownNotice};

use crate::refused::Refused;
use crate::visitor::Visitor;

/// The API's events for whoever reads the page: a browser sends no token along with these.
pub(crate) async fn events(
    visitor: Visitor,
    stopping: Option<Extension<ShutdownNotice>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refused> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut request = Request::get(format!("/api/v1/events{query}"));
    // Whoever lost the connection goes on where they were.
    if let Some(last) = headers.get("last-event-id") {
        request = request.header("last-event-id", last);
    }
    if let Some(Extension(stopping)) = stopping {
        request = request.extension(stopping);
    }
    let request = request.body(Body::empty()).map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(visitor.ask.raw(request).await)
}
