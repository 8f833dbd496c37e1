//! The document and what is served are the same, and every answer of every test fits the document.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use axum::http::{Method, StatusCode};
use ebbflow_api::openapi;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::world::World;

/// By operation and status: made when it is first needed.
static VALIDATORS: LazyLock<Mutex<BTreeMap<(String, u16), &'static Validator>>> =
    LazyLock::new(Mutex::default);

/// Every method and path, below `/api/v1`.
fn operations() -> impl Iterator<Item = (Method, &'static str, &'static Value)> {
    let paths = openapi::document()["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, methods)| {
        let path = path.strip_prefix("/api/v1").unwrap();
        let of = move |(method, it): (&'static String, &'static Value)| {
            (method.to_uppercase().parse().unwrap(), path, it)
        };
        methods.as_object().unwrap().iter().map(of)
    })
}

/// Whether a path is one of a template; a word counts for more than a name.
fn fits(template: &str, path: &str) -> Option<usize> {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(of, is): (&&str, &&str)| of == is || (of.starts_with('{') && !is.is_empty());
    (template.len() == path.len() && template.iter().zip(&path).all(same))
        .then(|| template.iter().filter(|part| !part.starts_with('{')).count())
}

/// An answer is one that the document tells of, in every field.
pub(crate) fn check(method: &Method, path: &str, status: StatusCode, body: &Value) {
    let path = path.split('?').next().unwrap();
    let found = operations()
        .filter(|(its, _, _)| its == method)
        .filter_map(|it| fits(it.1, path).map(|words| (words, it)))
        .max_by_key(|(words, _)| *words);
    let Some((_, (_, template, operation))) = found else {
        let refused = matches!(status.as_u16(), 400 | 404 | 405 | 413);
        assert!(refused, "{method} {path} is in no document, and was answered {status}");
        return;
    };
    let key = (format!("{method} {template}"), status.as_u16());
    let mut validators = VALIDATORS.lock().unwrap();
    let validator =
        validators.entry(key).or_insert_with(|| Box::leak(Box::new(validator(operation, status))));
    let errors: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {template} {status}: {errors:#?}\n{body:#}");
}

fn validator(operation: &Value, status: StatusCode) -> Validator {
    let document = openapi::document();
    let answer = &operation["responses"][status.as_str()];
    assert!(!answer.is_null(), "{} is never answered {status}", operation["operationId"]);
    let answer = match answer["$ref"].as_str() {
        Some(_) => &document["components"]["responses"][status.as_str()],
        None => answer,
    };
    let schema = &answer["content"]["application/json"]["schema"];
    let whole = json!({"allOf": [schema], "components": document["components"]});
    jsonschema::draft202012::new(&whole).unwrap()
}

#[tokio::test]
async fn every_operation_of_the_document_is_served() {
    let world = World::new().await;
    // Webhooks are served beside the API, and held against the document there.
    let own = operations().filter(|(_, path, _)| !path.contains("/hooks/") && !path.starts_with("/hooks"));
    for (method, path, operation) in own {
        let path = path.replace("{number}", "1").replace("{other}", "2").replace("{id}", "x");
        let response = world.request(method.clone(), &path, &[("authorization", "")], "").await;
        let expected = if operation["security"] == json!([]) { 200 } else { 401 };
        assert_eq!(response.status().as_u16(), expected, "{method} {path}");
    }
}

/// What callers rely on: an operation that is missing here is new, one that is here and missing there broke somebody.
#[test]
fn the_operations_are_those_that_callers_know() {
    let mut lines: Vec<String> = operations()
        .map(|(method, path, operation)| {
            format!("{method} {path} {}", operation["operationId"].as_str().unwrap())
        })
        .collect();
    lines.sort();
    assert_eq!(lines, include_str!("operations.txt").lines().collect::<Vec<_>>(), "\n{}", lines.join("\n"));
}

#[test]
fn the_document_is_one_that_others_can_read() {
    let document = openapi::document();
    assert_eq!(document["openapi"], "3.1.0");
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
    let mut names: Vec<_> =
        operations().map(|(_, _, operation)| operation["operationId"].to_string()).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "an operation is named once");
    for (method, path, operation) in operations() {
        let named = path.matches('{').count();
        let documented =
            operation["parameters"].as_array().unwrap().iter().filter(|one| one["in"] == "path").count();
        assert_eq!(documented, named, "{method} {path}");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
        assert!(!name.ends_with('2'), "{name}: two types share a name");
    }
}

#[test]
fn the_document_is_one_that_linters_accept() {
    let document = openapi::document();
    assert!(document["info"]["contact"]["name"].is_string());
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (method, path, operation) in operations() {
        assert!(operation["description"].as_str().is_some_and(|text| text.ends_with('.')), "{method} {path}");
        assert!(tags.contains(&&operation["tags"][0]), "{method} {path}: {}", operation["tags"]);
    }
    let text = document.to_string();
    for boolean in ["\"schema\":true", "\"items\":true", "\"additionalProperties\":true"] {
        assert!(!text.contains(boolean), "{boolean}");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema.is_object(), "{name}.{property}");
        }
    }
}

#[tokio::test]
async fn people_read_the_document_without_script_or_token() {
    let world = World::new().await;
    let response = world.request(Method::GET, "/docs", &[("authorization", "")], "").await;
    assert!(
        response.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'")
    );
    let page = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let page = std::str::from_utf8(&page).unwrap();
    assert!(
        page.contains("/api/v1/runs/{id}/cancel") && !page.contains("<script") && !page.contains(" style=")
    );
}
