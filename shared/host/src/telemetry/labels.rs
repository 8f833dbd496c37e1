//! The fields of a log line: its own, and those of the spans around it.

use std::fmt::Debug;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

/// The fields that become labels, each with its label, by which people find the lines of a run, a task or an attempt.
const LABELS: [(&str, &str); 5] = [
    ("tenant", "tenant"),
    ("workflow", "workflow"),
    ("run", "runId"),
    ("task", "task"),
    ("attempt", "attempt"),
];

/// The fields of a line or a span, by purpose.
#[derive(Clone, Default, Debug)]
pub(crate) struct Fields {
    /// Tenant, workflow, run, task and attempt.
    pub(crate) labels: Map<String, Value>,
    /// The trace of the request (32 hex digits), and the span within it (16).
    pub(crate) trace: Option<String>,
    pub(crate) span: Option<String>,
    /// The HTTP request of a response.
    pub(crate) request: Map<String, Value>,
    pub(crate) others: Map<String, Value>,
}

impl Fields {
    /// Overrides labels, trace and span with those of an inner span or line.
    pub(crate) fn override_with(&mut self, inner: &Self) {
        self.labels.extend(inner.labels.clone());
        self.trace = inner.trace.clone().or(self.trace.take());
        self.span = inner.span.clone().or(self.span.take());
    }

    /// The trace of the line: that of its run, else that of the request.
    pub(crate) fn trace(&self) -> Option<String> {
        let run = self.labels.get("runId").and_then(Value::as_str).map(|run| run.replace('-', ""));
        run.or(self.trace.clone())
    }

    /// The span of the line, if it belongs to that trace.
    pub(crate) fn span(&self) -> Option<&str> {
        self.span.as_deref().filter(|_| self.trace() == self.trace)
    }

    fn put(&mut self, field: &Field, value: Value) {
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = field.name();
        if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == name) {
            // Labels are strings.
            self.labels.insert((*label).into(), Value::String(text()));
        } else if name == "trace" {
            self.trace = Some(text());
        } else if name == "span" {
            self.span = Some(text());
        } else if let Some(part) = name.strip_prefix("http.") {
            self.request.insert(part.into(), value);
        } else {
            self.others.insert(name.into(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}
