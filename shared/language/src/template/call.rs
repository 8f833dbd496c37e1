//! Rendering what a callback does.

use model::Call;
use serde_json::Value;

use super::render::{RenderError, Renderer};
use super::scope::Scope;
use crate::node::Path;

/// Renders what a callback does; values put into a webhook's URL are percent-encoded.
pub fn render_call(call: &Call, scope: &Scope) -> Result<Call, RenderError> {
    let mut written = serde_json::to_value(call).expect("a call's keys are texts");
    let mut renderer = Renderer::new(scope, &["url"]);
    let parts = written.as_object_mut().into_iter().flatten().map(|(_, parts)| parts);
    for part in parts {
        *part = renderer.value(part, &Path::default())?;
    }
    fitting(written)
}

fn fitting(rendered: Value) -> Result<Call, RenderError> {
    // The reason would quote what was rendered, which may hold a secret.
    serde_json::from_value(rendered).map_err(|_| RenderError {
        path: String::new(),
        message: "the rendered value is not a callback".to_owned(),
        hint: Some("a URL, a topic and a workflow's name are texts, headers and inputs mappings".to_owned()),
    })
}
