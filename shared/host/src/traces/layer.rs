//! Turns each request into a span, with the labels of its log lines.

use bus::SystemClock;
use model::{Clock, Instant};
use serde_json::{Map, Value};
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::{Kind, Span, buffer};
use crate::telemetry::Fields;

/// Exports the span of each request. Does nothing if no exporter is configured.
pub(crate) struct SpanLayer;

/// A span that has not ended.
struct Open {
    fields: Fields,
    from: Instant,
    caller: Option<(String, String)>,
}

impl Open {
    /// A request about a run joins the run's trace and leaves its caller's.
    fn record(&mut self, record: impl FnOnce(&mut Fields)) {
        let before = (self.fields.trace.clone(), other(&self.fields, "parent"));
        record(&mut self.fields);
        if let (Some(trace), Some(parent)) = before
            && self.fields.trace.as_ref() != Some(&trace)
        {
            self.caller = Some((trace, parent));
        }
    }

    /// The span to export; none without a trace, or if the caller does not record its trace.
    fn close(self, to: Instant) -> Option<Span> {
        let Self { fields, from, caller } = self;
        let (parent, name) = (other(&fields, "parent")?, other(&fields, "name")?);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let named = |labels: &Map<String, Value>| -> Vec<(String, String)> {
            let name = |name: &str| if name == "runId" { "run".into() } else { name.to_owned() };
            labels.iter().map(|(label, value)| (name(label), text(value))).collect()
        };
        let mut labels = named(&fields.labels);
        let status = fields.others.get("status").and_then(Value::as_u64);
        labels.extend(status.map(|status| ("http.response.status_code".into(), status.to_string())));
        let kind = if name.starts_with("dev.ebbflow.") { Kind::Consumer } else { Kind::Server };
        let failed = status.is_some_and(|status| status >= 500);
        let (trace, id) = (fields.trace?, fields.span?);
        Some(Span { trace, id, parent: Some(parent), name, kind, from, to, labels, caller, failed })
    }
}

fn other(fields: &Fields, name: &str) -> Option<String> {
    fields.others.get(name)?.as_str().map(str::to_owned)
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if buffer().is_none() {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Open { fields, from: SystemClock.now(), caller: None });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            open.record(|fields| values.record(fields));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some((buffer, span)) = buffer().zip(open.and_then(|open| open.close(SystemClock.now()))) {
            buffer.add(span);
        }
    }
}
