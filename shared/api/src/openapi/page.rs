//! The document as a page: read by people, without a script.

use std::fmt::Write;

use serde_json::Value;

pub(super) const STYLE: &str = include_str!("style.css");

/// The document as one HTML page.
pub(super) fn render(document: &Value) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>The API of Ebbflow</title>\
         <link rel=\"stylesheet\" href=\"/api/v1/docs/style.css\"></head><body><main><h1>The API of Ebbflow</h1>\
         <p>The same for programs: <a href=\"/api/v1/openapi.json\">openapi.json</a></p>",
    );
    let mut subject = String::new();
    for (path, method, operation) in operations(document) {
        let tag = operation["tags"][0].as_str().unwrap_or_default();
        if tag != subject {
            subject = tag.to_owned();
            page.push_str(&format!("<h2 id=\"{0}\">{0}</h2>", escape(tag)));
        }
        page.push_str(&show(path, method, operation));
    }
    page.push_str("<h2 id=\"schemas\">Schemas</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = write!(
            page,
            "<details id=\"{0}\"><summary><code>{0}</code></summary>{1}</details>",
            escape(name),
            pretty(schema)
        );
    }
    page.push_str("</main></body></html>");
    page
}

/// Every operation, those of one subject together.
pub(super) fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        methods
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(method, it)| (path.as_str(), method.as_str(), it))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(path, method, operation)| (operation["tags"][0].as_str(), *path, *method));
    all
}

fn show(path: &str, method: &str, operation: &Value) -> String {
    let summary = escape(operation["summary"].as_str().unwrap_or_default());
    let method = method.to_uppercase();
    let mut shown = format!(
        "<details><summary><b>{method}</b> <code>{}</code> <span>{summary}</span></summary>",
        escape(path)
    );
    let _ = write!(shown, "<p>{}</p>", escape(operation["description"].as_str().unwrap_or_default()));
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        shown.push_str("<table><tr><th>parameter</th><th>in</th><th>what</th></tr>");
        for parameter in parameters {
            let text = |field: &str| escape(parameter[field].as_str().unwrap_or_default());
            let _ = write!(
                shown,
                "<tr><td><code>{}</code></td><td>{}</td><td>{} <code>{}</code></td></tr>",
                text("name"),
                text("in"),
                text("description"),
                escape(&parameter["schema"].to_string())
            );
        }
        shown.push_str("</table>");
    }
    for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        let _ = write!(shown, "<h4>Body: {}</h4>{}", escape(kind), pretty(&content["schema"]));
    }
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        for (kind, content) in answer["content"].as_object().into_iter().flatten() {
            let _ = write!(shown, "<h4>{status}: {}</h4>{}", escape(kind), pretty(&content["schema"]));
        }
    }
    shown + "</details>"
}

/// A schema, with links to those that it names.
fn pretty(schema: &Value) -> String {
    let text = escape(&serde_json::to_string_pretty(schema).unwrap_or_default());
    let mut shown = String::from("<pre>");
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("#/components/schemas/") {
        let end = after.find("&quot;").unwrap_or(after.len());
        let (name, left) = after.split_at(end);
        let _ = write!(shown, "{before}<a href=\"#{name}\">{name}</a>");
        rest = left;
    }
    shown + rest + "</pre>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_in_the_document_becomes_markup() {
        let document = json!({"paths": {"/<i>": {"get": {"tags": ["<b>"], "summary": "<script>"}}}});
        let page = render(&document);
        assert!(!page.contains("<script>") && !page.contains("<i>") && page.contains("&lt;script&gt;"));
    }

    #[test]
    fn a_schema_links_to_those_it_names() {
        let shown = pretty(&json!({"$ref": "#/components/schemas/RunView"}));
        assert!(shown.contains("<a href=\"#RunView\">RunView</a>&quot;"), "{shown}");
    }
}
