//! Spans for a collector. The trace of a run has the run's id. Its root span is the run, from creation to end; below it are
//! the run's messages, each from its creation to its delivery, and below each message the request that handled it.

mod layer;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};

use bus::envelope::Delivery;
use model::{Instant, Message, RunId};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use layer::SpanLayer;

use crate::metrics::{Resource, attributes, nanos};

/// The maximum number of spans in a request. A full batch is sent at once.
const BATCH: usize = 512;

/// The maximum number of buffered spans; while the buffer is full, new spans are dropped.
const MAX_BUFFERED: usize = 4_096;

/// The span kinds of OTLP that are used here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Internal = 1,
    Server = 2,
    Producer = 4,
    Consumer = 5,
}

/// A span, as exported.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) labels: Vec<(String, String)>,
    /// The trace and span of a caller with a separate trace.
    pub(crate) caller: Option<(String, String)>,
    pub(crate) failed: bool,
}

/// The spans that the exporter has not sent yet.
#[derive(Default)]
pub(crate) struct SpanBuffer {
    spans: Mutex<VecDeque<Span>>,
    batch_ready: Notify,
}

/// The buffer of this process, if it has an exporter.
static BUFFER: OnceLock<SpanBuffer> = OnceLock::new();

/// Starts to buffer spans, for an exporter.
pub(crate) fn start_buffering() -> &'static SpanBuffer {
    BUFFER.get_or_init(SpanBuffer::default)
}

fn buffer() -> Option<&'static SpanBuffer> {
    BUFFER.get()
}

impl SpanBuffer {
    /// Adds a span, or drops it if the buffer is full.
    fn add(&self, span: Span) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MAX_BUFFERED {
            spans.push_back(span);
        }
        if spans.len() >= BATCH {
            self.batch_ready.notify_one();
        }
    }

    /// Removes and returns a batch, the oldest spans first.
    pub(crate) fn take(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let count = spans.len().min(BATCH);
        spans.drain(..count).collect()
    }

    /// Resolves once a full batch is buffered.
    pub(crate) async fn batch_ready(&self) {
        self.batch_ready.notified().await;
    }
}

/// The id of a new span.
pub(crate) fn new_id() -> String {
    // Each `RandomState` has new keys. An id of zeros is invalid.
    format!("{:016x}", RandomState::new().hash_one(0_u8).max(1))
}

/// The trace id and the span id in a W3C trace context.
pub(crate) fn parts(traceparent: &str) -> (&str, &str) {
    (&traceparent[3..35], &traceparent[36..52])
}

/// Records the span of a delivered message, and of the run if the message reports its end.
pub(crate) fn record_delivery(delivery: &Delivery, now: Instant) {
    // A redelivery would be the same span, only longer.
    let (Some(buffer), Some(run), None | Some(1)) = (buffer(), delivery.message.run(), delivery.attempt)
    else {
        return;
    };
    if let Some((parent, from)) = delivery.traceparent.as_deref().zip(delivery.created_at) {
        let (trace, id) = parts(parent);
        buffer.add(Span {
            trace: trace.into(),
            id: id.into(),
            parent: Some(root(run)),
            name: delivery.message.kind().into(),
            kind: Kind::Producer,
            from,
            to: now.max(from),
            labels: vec![("run".into(), run.to_string())],
            caller: None,
            failed: false,
        });
    }
    if let Message::RunFinished(end) = &delivery.message
        && let Some(from) = end.created_at
    {
        let labels = [("run", run.to_string()), ("workflow", end.workflow.clone())];
        let labels = labels.into_iter().chain([("state", end.state.name().to_owned())]);
        buffer.add(Span {
            trace: run.trace_id(),
            id: root(run),
            parent: None,
            name: format!("run of {}", end.workflow),
            kind: Kind::Internal,
            from,
            to: end.finished_at.max(from),
            labels: labels.map(|(name, value)| (name.to_owned(), value)).collect(),
            caller: None,
            failed: end.state == model::RunState::Failed,
        });
    }
}

fn root(run: RunId) -> String {
    parts(&run.traceparent()).1.to_owned()
}

/// The spans as an OTLP export request.
pub(crate) fn as_otlp(spans: &[Span], resource: &Resource) -> Value {
    let spans: Vec<Value> = spans.iter().map(span_json).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource.attributes()},
        "scopeSpans": [{"scope": {"name": "ebbflow"}, "spans": spans}],
    }]})
}

fn span_json(span: &Span) -> Value {
    /// OTLP's status code of a failed span.
    const ERROR: u32 = 2;
    let labels = span.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut json = json!({
        "traceId": span.trace, "spanId": span.id, "name": span.name, "kind": span.kind as u32,
        "startTimeUnixNano": nanos(span.from), "endTimeUnixNano": nanos(span.to), "attributes": attributes(labels),
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = json!(parent);
    }
    if let Some((trace, id)) = &span.caller {
        json["links"] = json!([{"traceId": trace, "spanId": id}]);
    }
    if span.failed {
        json["status"] = json!({"code": ERROR});
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        let instant = |second| Instant::from_timestamp(second, 0).unwrap();
        Span {
            trace: "018f0000000070008000000000000001".into(),
            id: "00f067aa0ba902b7".into(),
            parent: None,
            name: "run of three".into(),
            kind: Kind::Server,
            from: instant(1),
            to: instant(2),
            labels: vec![("task".into(), "load".into())],
            caller: None,
            failed: false,
        }
    }

    #[test]
    fn spans_are_exported_as_otlp() {
        let caller = Some(("0af7651916cd43dd8448eb211c80319c".into(), "b7ad6b7169203331".into()));
        let inner = Span { parent: Some("a".repeat(16)), caller, failed: true, ..span() };
        let request = as_otlp(&[span(), inner], &Resource::new("ebbflow", "execute", None, None));
        let resource = &request["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "ebbflow-execute");
        let outer = json!({
            "traceId": "018f0000000070008000000000000001", "spanId": "00f067aa0ba902b7", "name": "run of three", "kind": 2,
            "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
            "attributes": [{"key": "task", "value": {"stringValue": "load"}}],
        });
        assert_eq!(resource["scopeSpans"][0]["spans"][0], outer);
        let inner = &resource["scopeSpans"][0]["spans"][1];
        assert_eq!(inner["parentSpanId"], "aaaaaaaaaaaaaaaa");
        let caller = json!([{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"}]);
        assert_eq!((&inner["links"], &inner["status"]), (&caller, &json!({"code": 2})));
    }

    #[test]
    fn the_buffer_is_bounded() {
        let buffer = SpanBuffer::default();
        for _ in 0..MAX_BUFFERED + 1 {
            buffer.add(span());
        }
        let mut taken = 0;
        loop {
            let spans = buffer.take();
            assert!(spans.len() <= BATCH);
            if spans.is_empty() {
                break;
            }
            taken += spans.len();
        }
        assert_eq!(taken, MAX_BUFFERED);
    }

    #[test]
    fn span_ids_are_unique() {
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|_| new_id()).collect();
        assert!(ids.len() == 1_000 && ids.iter().all(|id| id.len() == 16), "{ids:?}");
    }
}
