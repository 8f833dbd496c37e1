//! Signed webhooks in the document. The trigger function serves them next to the API, and they need no token.

use serde_json::{Map, Value, json};

/// The path for webhooks of the tenant `default`, and the path for any tenant.
pub const PATHS: [&str; 2] =
    ["/api/v1/hooks/{workflow}/{trigger}", "/api/v1/tenants/{tenant}/hooks/{workflow}/{trigger}"];

/// The operations of each path, by method.
pub(super) fn paths() -> impl Iterator<Item = (String, Value)> {
    let names = ["hooks_post_take", "hooks_post_take_of_tenant"];
    PATHS
        .into_iter()
        .zip(names)
        .map(|(path, name)| (path.to_owned(), json!({ "post": operation(path, name) })))
}

fn operation(path: &str, name: &str) -> Value {
    let named = crate::endpoints::names(path);
    let mut parameters: Vec<Value> = named
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    parameters.extend([
        header(
            "X-Ebb-Timestamp",
            true,
            "When the request was signed, in seconds since 1970. At most five minutes off.",
        ),
        header(
            "X-Ebb-Signature",
            true,
            "`v1=` and the HMAC-SHA256 of the timestamp, a dot and the body, in hexadecimal.",
        ),
        header(
            "X-Ebb-Id",
            false,
            "Identifies the event, so that a repeated one starts nothing. The signature identifies it otherwise.",
        ),
    ]);
    json!({
        "operationId": name,
        "tags": ["hooks"],
        "summary": "Send a signed webhook",
        "description": "Starts a run of the workflow if the event passes the trigger's filter. The signature replaces a token.",
        "parameters": parameters,
        "requestBody": {
            "description": "Any JSON. A body that is not JSON is taken as text.",
            "content": {"application/json": {"schema": {}}},
        },
        "responses": responses(),
        "security": [],
    })
}

fn header(name: &str, required: bool, what: &str) -> Value {
    json!({
        "name": name, "in": "header", "required": required, "description": what,
        "schema": {"type": "string", "pattern": "^[!-~]+$"},
    })
}

fn responses() -> Map<String, Value> {
    let answer = |what: &str, fields: Value| {
        let schema = json!({"type": "object", "properties": fields, "required": ["id"]});
        json!({"description": what, "content": {"application/json": {"schema": schema}}})
    };
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let mut responses = Map::from_iter([
        (
            "200".to_owned(),
            answer(
                "No run was started: the event is a duplicate, was filtered out, or the workflow is paused or at its limit.",
                json!({"id": text, "duplicate": flag, "filtered": flag, "skipped": text}),
            ),
        ),
        (
            "201".to_owned(),
            answer("A run was started.", json!({"id": text, "run_id": text, "links": {"type": "object"}})),
        ),
        (
            "202".to_owned(),
            answer(
                "The event is held back. The last of several starts a run.",
                json!({"id": text, "held_until": text}),
            ),
        ),
    ]);
    for status in [400, 401, 404, 409, 413, 422, 500, 503] {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    responses
}
