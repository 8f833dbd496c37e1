//! The JSON Schemas of the language, for editors: everyone may read them, and keep them for a while.

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::get;

/// `/schemas/workflow.json` and its like.
pub(crate) fn router() -> Router {
    api::definitions::schemas().fold(Router::new(), |router, (name, schema)| {
        let path = format!("/schemas/{name}.json");
        let content = Bytes::from(schema.to_string());
        let headers = [
            (header::CONTENT_TYPE, "application/schema+json"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ];
        router.route(&path, get(move || async move { (headers, content) }))
    })
}
