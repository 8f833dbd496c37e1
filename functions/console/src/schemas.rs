//! The JSON Schemas of the language, for editors: everyone may read them, and keep them for a while.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use language::{SCHEMAS, json_schema};

/// `/schemas/workflow.json` and its like.
pub(crate) fn router() -> Router {
    SCHEMAS.into_iter().fold(Router::new(), |router, (name, kind)| {
        let schema = json_schema(kind).to_string();
        let headers = [
            (header::CONTENT_TYPE, "application/schema+json"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ];
        router.route(&format!("/schemas/{name}.json"), get(move || async move { (headers, schema) }))
    })
}
