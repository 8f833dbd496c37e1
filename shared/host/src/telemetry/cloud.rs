//! Lines as Cloud Logging reads them: one JSON object each, with severity, trace, span, labels, source location and the
//! request.

use std::io::Write;

use bus::SystemClock;
use chrono::SecondsFormat;
use model::Clock;
use serde_json::{Map, Value, json};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::labels::Fields;

/// Writes a line for each event.
pub(super) struct CloudLayer<W> {
    project: Option<String>,
    out: W,
}

impl<W> CloudLayer<W> {
    /// A layer whose lines link to traces of a project.
    pub(super) fn new(project: Option<String>, out: W) -> Self {
        Self { project, out }
    }

    fn line(&self, event: &Event<'_>, fields: Fields) -> Value {
        let (trace, span) = (fields.trace(), fields.span().map(str::to_owned));
        let metadata = event.metadata();
        let mut line = fields.others;
        line.insert("severity".into(), severity(metadata.level()).into());
        line.insert("time".into(), SystemClock.now().to_rfc3339_opts(SecondsFormat::Micros, true).into());
        // Cloud Logging stores a payload with nothing but a message as text, which log-based metrics do not match.
        line.insert("target".into(), metadata.target().into());
        put(&mut line, "httpRequest", fields.request);
        put(&mut line, "logging.googleapis.com/labels", fields.labels);
        if let Some(trace) = trace {
            let name = self.project.as_ref().map(|project| format!("projects/{project}/traces/{trace}"));
            line.insert("logging.googleapis.com/trace".into(), name.unwrap_or(trace).into());
        }
        if let Some(span) = span {
            line.insert("logging.googleapis.com/spanId".into(), span.into());
        }
        if let (Some(file), Some(number)) = (metadata.file(), metadata.line()) {
            let location = json!({
                "file": file, "line": number.to_string(), "function": metadata.module_path().unwrap_or_default(),
            });
            line.insert("logging.googleapis.com/sourceLocation".into(), location);
        }
        Value::Object(line)
    }
}

fn put(line: &mut Map<String, Value>, name: &str, part: Map<String, Value>) {
    if !part.is_empty() {
        line.insert(name.into(), Value::Object(part));
    }
}

fn severity(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

impl<S, W> Layer<S> for CloudLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.override_with(outer);
            }
        }
        fields.override_with(&own);
        let fields = Fields { request: own.request, others: own.others, ..fields };
        let mut line = self.line(event, fields).to_string();
        line.push('\n');
        // One write, so that lines of several threads do not mix. A closed pipe is ignored.
        let _ = self.out.make_writer().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{error_span, info, warn};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    const RUN: &str = "018f0000-0000-7000-8000-000000000001";
    const TRACE: &str = "018f0000000070008000000000000001";

    /// The output of all threads.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `work` logs.
    fn written(project: Option<&str>, work: impl FnOnce()) -> Vec<Value> {
        let out = Lines::default();
        let writer = out.clone();
        let layer = CloudLayer::new(project.map(str::to_owned), move || writer.clone());
        let subscribed = testkit::subscribe(tracing_subscriber::registry().with(layer));
        work();
        drop(subscribed);
        let out = out.0.lock().unwrap();
        out.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_has_labels_trace_and_source_location() {
        let lines = written(Some("p"), || {
            let span = error_span!(
                "request",
                trace = TRACE,
                span = "00f067aa0ba902b7",
                run = RUN,
                task = tracing::field::Empty
            );
            let _guard = span.enter();
            span.record("task", "load");
            warn!(attempt = 2, rows = 7, "It went {} wrong", "badly");
        });
        let line = &lines[0];
        assert_eq!(line["severity"], "WARNING");
        assert_eq!(line["message"], "It went badly wrong");
        assert_eq!(line["rows"], 7);
        assert_eq!(line["logging.googleapis.com/trace"], format!("projects/p/traces/{TRACE}"));
        assert_eq!(line["logging.googleapis.com/spanId"], "00f067aa0ba902b7");
        let labels = json!({"runId": RUN, "task": "load", "attempt": "2"});
        assert_eq!(line["logging.googleapis.com/labels"], labels);
        let location = &line["logging.googleapis.com/sourceLocation"];
        assert!(
            location["file"].as_str().unwrap().ends_with("cloud.rs") && location["line"].is_string(),
            "{location}"
        );
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_line_about_a_run_belongs_to_the_runs_trace() {
        let lines = written(None, || {
            let span =
                error_span!("request", trace = "0af7651916cd43dd8448eb211c80319c", span = "b7ad6b7169203331");
            let _guard = span.enter();
            info!("of the request");
            info!(run = RUN, "of a run");
        });
        assert_eq!(lines[0]["logging.googleapis.com/trace"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(lines[0]["logging.googleapis.com/spanId"], "b7ad6b7169203331");
        assert_eq!(lines[1]["logging.googleapis.com/trace"], TRACE);
        assert_eq!(lines[1].get("logging.googleapis.com/spanId"), None);
    }

    #[test]
    fn a_response_is_logged_as_an_http_request() {
        let lines =
            written(None, || info!(http.requestMethod = "POST", http.status = 503, "POST /push: 503"));
        assert_eq!(lines[0]["httpRequest"], json!({"requestMethod": "POST", "status": 503}));
    }
}
