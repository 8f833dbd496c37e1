//! The style sheet, the script and the icon. Everyone may have them; a browser keeps them until they change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const STYLE: &str = include_str!("../templates/style.css");
const SCRIPT: &str = include_str!("../templates/console.js");
const ICON: &str = include_str!("../templates/icon.svg");

static STAMP: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    (STYLE, SCRIPT, ICON).hash(&mut hasher);
    format!("{:x}", hasher.finish())
});

/// The hash in the addresses of cached assets: other content has another address.
pub(crate) fn stamp() -> &'static str {
    &STAMP
}

/// `/style.css`, `/console.js` and `/icon.svg`.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/style.css", get(|| async { kept("text/css; charset=utf-8", STYLE) }))
        .route("/console.js", get(|| async { kept("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/icon.svg", get(|| async { kept("image/svg+xml", ICON) }))
}

fn kept(kind: &'static str, content: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, content)
}
