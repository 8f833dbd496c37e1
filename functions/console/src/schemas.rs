//! The JSON Schemas of the language, for editors: everyone may read them, and keep them for a while.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use language::Schema;

/// `/schemas/workflow.json` and its like.
pub(crate) fn router() -> Router {
    Schema::ALL.into_iter().fold(Router::new(), |router, schema| {
        let path = format!("/schemas/{}.json", schema.name());
        let content = schema.to_json().to_string();
        let headers = [
            (header::CONTENT_TYPE, "application/schema+json"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ];
        router.route(&path, get(move || async move { (headers, content) }))
    })
}
