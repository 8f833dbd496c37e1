//! The description of the API itself.

use super::{Row, get};
use crate::openapi;

pub(super) fn rows() -> Vec<Row> {
    vec![
        get("/openapi.json", openapi::get_document)
            .id("openapi_get_document")
            .public()
            .docs("Get the OpenAPI document", "Returns this document as JSON. No token is needed."),
        get("/docs", openapi::get_page)
            .id("openapi_get_page")
            .public()
            .docs("Read the API reference", "Returns this document as a page for people. No token is needed.")
            .answers("text/html"),
        get("/docs/style.css", openapi::get_style)
            .id("openapi_get_style")
            .public()
            .docs("Get the style sheet", "Returns the style sheet of the API reference.")
            .answers("text/css"),
    ]
}
