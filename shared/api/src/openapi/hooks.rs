//! Signed webhooks, as the document tells of them. They are served beside the API, by whoever starts runs, and take no token.

use serde_json::{Map, Value, json};

/// Where webhooks of the tenant `default` are sent to, and those of any tenant.
pub const PATHS: [&str; 2] =
    ["/api/v1/hooks/{workflow}/{trigger}", "/api/v1/tenants/{tenant}/hooks/{workflow}/{trigger}"];

/// What each address takes and answers, by method.
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
            "When it was signed, in seconds since 1970: within five minutes of now.",
        ),
        header(
            "X-Ebb-Signature",
            true,
            "`v1=` and the HMAC-SHA256, in hexadecimal, of the timestamp, a dot and the body.",
        ),
        header(
            "X-Ebb-Id",
            false,
            "Names the event: sent again, it starts nothing. Without it, its signature does.",
        ),
    ]);
    json!({
        "operationId": name,
        "tags": ["hooks"],
        "summary": "Send a signed webhook: it starts a run",
        "parameters": parameters,
        "requestBody": {
            "description": "Anything; what is no JSON is taken for a text.",
            "content": {"application/json": {"schema": true}},
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
                "It starts no run: it came before, does not pass the filter, or the workflow wants none now.",
                json!({"id": text, "duplicate": flag, "filtered": flag, "skipped": text}),
            ),
        ),
        (
            "201".to_owned(),
            answer("It started a run.", json!({"id": text, "run_id": text, "links": {"type": "object"}})),
        ),
        (
            "202".to_owned(),
            answer(
                "It is held back: the last one of several starts a run.",
                json!({"id": text, "held_until": text}),
            ),
        ),
    ]);
    for status in [400, 401, 404, 409, 413, 422, 500, 503] {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    responses
}
