//! Spans for a collector: what was done for a run, by whom, and when. The trace of a run has its id. Its root is the run
//! from its beginning to its end; below lie its messages, each from when it was made to when it arrived, and below these
//! what was done about each.

mod layer;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};

use bus::envelope::Delivery;
use model::{Instant, Message, RunId};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use layer::SpanLayer;

use crate::metrics::{attributes, nanos};

/// So many are sent at once; as soon as there are as many, they are.
const BATCH: usize = 512;

/// No more wait for a collector that does not take them: later ones are left out.
const MOST: usize = 4_096;

/// What spans are, in OTLP's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Internal = 1,
    Server = 2,
    Producer = 4,
    Consumer = 5,
}

/// Something that was done, with its place in a trace.
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
    /// The trace and span of a caller who has a trace of its own.
    pub(crate) caller: Option<(String, String)>,
    pub(crate) failed: bool,
}

/// The spans that wait to be sent.
#[derive(Default)]
pub(crate) struct Waiting {
    spans: Mutex<VecDeque<Span>>,
    enough: Notify,
}

/// Those of this process, once somebody sends them.
static WAITING: OnceLock<Waiting> = OnceLock::new();

/// From now on spans are gathered, for whoever asks.
pub(crate) fn gather() -> &'static Waiting {
    WAITING.get_or_init(Waiting::default)
}

fn gathered() -> Option<&'static Waiting> {
    WAITING.get()
}

impl Waiting {
    /// Never waits, and never fails: what finds no room is left out.
    fn add(&self, span: Span) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MOST {
            spans.push_back(span);
        }
        if spans.len() >= BATCH {
            self.enough.notify_one();
        }
    }

    /// Some of them, the oldest first; they wait no longer.
    pub(crate) fn take(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let most = spans.len().min(BATCH);
        spans.drain(..most).collect()
    }

    /// Resolves once there are as many as are sent at once.
    pub(crate) async fn enough(&self) {
        self.enough.notified().await;
    }
}

/// The id of a new span.
pub(crate) fn new_id() -> String {
    // Each of these has keys of its own. An id of zeros would be none.
    format!("{:016x}", RandomState::new().hash_one(0_u8).max(1))
}

/// The trace and the span of a caller, of a W3C trace context.
pub(crate) fn parts(traceparent: &str) -> (&str, &str) {
    (&traceparent[3..35], &traceparent[36..52])
}

/// A message has arrived: its way here is a span, and if it tells the end of a run, the run is one.
pub(crate) fn arrived(delivery: &Delivery, now: Instant) {
    // Delivered again, it would be the same span, only longer.
    let (Some(waiting), Some(run), None | Some(1)) = (gathered(), delivery.message.run(), delivery.attempt)
    else {
        return;
    };
    if let Some((parent, from)) = delivery.traceparent.as_deref().zip(delivery.made_at) {
        let (trace, id) = parts(parent);
        waiting.add(Span {
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
        waiting.add(Span {
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

/// The spans as a request of OTLP.
pub(crate) fn as_otlp(spans: &[Span], service: &str) -> Value {
    let spans: Vec<Value> = spans.iter().map(written).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes([("service.name", service)])},
        "scopeSpans": [{"scope": {"name": "ebbflow"}, "spans": spans}],
    }]})
}

fn written(span: &Span) -> Value {
    /// A status that says that it went wrong.
    const ERROR: u32 = 2;
    let labels = span.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut written = json!({
        "traceId": span.trace, "spanId": span.id, "name": span.name, "kind": span.kind as u32,
        "startTimeUnixNano": nanos(span.from), "endTimeUnixNano": nanos(span.to), "attributes": attributes(labels),
    });
    if let Some(parent) = &span.parent {
        written["parentSpanId"] = json!(parent);
    }
    if let Some((trace, id)) = &span.caller {
        written["links"] = json!([{"traceId": trace, "spanId": id}]);
    }
    if span.failed {
        written["status"] = json!({"code": ERROR});
    }
    written
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
    fn a_collector_is_sent_spans_as_otlp_writes_them() {
        let caller = Some(("0af7651916cd43dd8448eb211c80319c".into(), "b7ad6b7169203331".into()));
        let inner = Span { parent: Some("a".repeat(16)), caller, failed: true, ..span() };
        let request = as_otlp(&[span(), inner], "ebbflow-execute");
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
    fn no_more_spans_wait_than_there_is_room_for() {
        let waiting = Waiting::default();
        for _ in 0..MOST + 1 {
            waiting.add(span());
        }
        let mut taken = 0;
        loop {
            let spans = waiting.take();
            assert!(spans.len() <= BATCH);
            if spans.is_empty() {
                break;
            }
            taken += spans.len();
        }
        assert_eq!(taken, MOST);
    }

    #[test]
    fn each_span_has_an_id_of_its_own() {
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|_| new_id()).collect();
        assert!(ids.len() == 1_000 && ids.iter().all(|id| id.len() == 16), "{ids:?}");
    }
}
