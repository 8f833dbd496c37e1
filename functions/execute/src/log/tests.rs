use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use chrono::Duration;
use futures::FutureExt;
use model::{Instant, ProgressReport};
use testkit::{ManualClock, run_others};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::sink::SinkError;
use crate::task_runners::tests::job;

struct Chunk {
    first: u32,
    lines: Vec<LogLine>,
}

/// A sink that hands its chunks to the test, fails some appends, and can be blocked.
struct TestSink {
    taken: mpsc::UnboundedSender<Chunk>,
    tries: AtomicU32,
    refuse: fn(u32) -> Option<SinkError>,
    open: Semaphore,
}

#[async_trait]
impl AttemptSink for TestSink {
    async fn save_checkpoint(&self, _: Instant, _: &Value) -> Result<(), SinkError> {
        Ok(())
    }

    async fn report_progress(&self, _: &ProgressReport) -> Result<(), SinkError> {
        Ok(())
    }

    async fn append_log(&self, first: u32, lines: &[LogLine]) -> Result<(), SinkError> {
        let _open = self.open.acquire().await.unwrap();
        if let Some(error) = (self.refuse)(self.tries.fetch_add(1, Ordering::Relaxed)) {
            return Err(error);
        }
        let _ = self.taken.send(Chunk { first, lines: lines.to_vec() });
        Ok(())
    }
}

struct Bench {
    log: Log,
    sink: Arc<TestSink>,
    clock: ManualClock,
    chunks: mpsc::UnboundedReceiver<Chunk>,
}

/// A log whose sink fails the appends that `refuse` chooses, counted from 0.
fn bench(refuse: fn(u32) -> Option<SinkError>) -> Bench {
    let (taken, chunks) = mpsc::unbounded_channel();
    let sink = Arc::new(TestSink { taken, tries: AtomicU32::new(0), refuse, open: Semaphore::new(1) });
    let clock = ManualClock::at("2026-01-01T00:00:00Z");
    let log = Log::open(sink.clone(), Arc::new(clock.clone()), &job("noop", Value::Null));
    Bench { log, sink, clock, chunks }
}

impl Bench {
    async fn write(&self, text: &str) {
        self.log.line(Stream::Stdout, Level::Info, text).await;
    }

    /// Ends the log. Returns the number and text of each stored line.
    async fn stored(&mut self) -> Vec<(u32, String)> {
        self.log.finish().await;
        let mut lines = Vec::new();
        while let Ok(chunk) = self.chunks.try_recv() {
            lines.extend((chunk.first..).zip(chunk.lines.into_iter().map(|line| line.line)));
        }
        lines
    }
}

fn never(_: u32) -> Option<SinkError> {
    None
}

fn away() -> Option<SinkError> {
    Some(SinkError::Unavailable("away".into()))
}

#[tokio::test]
async fn a_hundred_lines_are_stored_at_once() {
    let mut bench = bench(never);
    for number in 0..250 {
        bench.write(&number.to_string()).await;
    }
    for first in [0, 100] {
        let chunk = bench.chunks.recv().await.unwrap();
        assert_eq!((chunk.first, chunk.lines.len()), (first, 100));
    }
    bench.log.finish().await;
    let chunk = bench.chunks.recv().await.unwrap();
    assert_eq!((chunk.first, chunk.lines.len()), (200, 50));
    assert_eq!(chunk.lines[49].line, "249");
}

#[tokio::test]
async fn a_single_line_waits_a_moment_for_others() {
    let mut bench = bench(never);
    bench.write("one").await;
    run_others().await;
    bench.clock.advance(Duration::milliseconds(249));
    bench.write("two").await;
    run_others().await;
    assert!(bench.chunks.try_recv().is_err());
    bench.clock.advance(Duration::milliseconds(1));
    let chunk = bench.chunks.recv().await.unwrap();
    assert_eq!((chunk.first, chunk.lines.len()), (0, 2));
    assert_eq!(chunk.lines[0].stream, "stdout");
    assert_eq!(chunk.lines[0].level, "info");
}

#[tokio::test]
async fn a_chunk_that_was_not_stored_is_retried_unchanged() {
    let mut bench = bench(|tries| (tries < 2).then(away).flatten());
    bench.write("one").await;
    run_others().await;
    bench.clock.advance(Duration::milliseconds(250));
    run_others().await;
    bench.write("two").await;
    bench.clock.advance(Duration::milliseconds(250));
    run_others().await;
    bench.clock.advance(Duration::milliseconds(250));
    let chunk = bench.chunks.recv().await.unwrap();
    assert_eq!((chunk.first, chunk.lines.len()), (0, 1));
    assert_eq!(bench.stored().await, [(1, "two".to_owned())]);
}

#[tokio::test]
async fn a_chunk_that_can_never_be_stored_does_not_block_the_next() {
    let refuse = |tries| (tries == 0).then(|| SinkError::Refused("no".into()));
    let mut bench = bench(refuse);
    for _ in 0..100 {
        bench.write("refused").await;
    }
    bench.write("kept").await;
    assert_eq!(bench.stored().await, [(100, "kept".to_owned())]);
}

#[tokio::test]
async fn an_unavailable_store_does_not_keep_an_attempt_from_ending() {
    let mut bench = bench(|_| away());
    bench.write("lost").await;
    let log = bench.log.clone();
    let finishing = tokio::spawn(async move { log.finish().await });
    run_others().await;
    assert_eq!(bench.sink.tries.load(Ordering::Relaxed), 1, "a server that restarts gets time");
    while !finishing.is_finished() {
        bench.clock.advance(Duration::seconds(1));
        run_others().await;
    }
    assert_eq!(bench.stored().await, []);
    assert_eq!(bench.sink.tries.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn a_writer_waits_while_too_many_lines_are_not_stored() {
    let bench = bench(never);
    let closed = bench.sink.open.acquire().await.unwrap();
    // One chunk is being stored, and the maximum number of lines waits behind it.
    for _ in 0..100 {
        bench.write("x").await;
    }
    run_others().await;
    for _ in 0..Log::MAX_WAITING_LINES {
        bench.write("x").await;
    }
    assert!(bench.write("one too many").now_or_never().is_none());
    drop(closed);
    bench.write("now there is room").await;
}

#[tokio::test]
async fn a_log_that_is_too_long_is_truncated_with_one_line_that_says_so() {
    let mut bench = bench(never);
    let mebibyte = "x".repeat(1024 * 1024 - 1);
    for _ in 0..13 {
        bench.write(&mebibyte).await;
    }
    bench.write("short").await;
    let lines = bench.stored().await;
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[10].1, "the log was cut here: an attempt may write at most 10 MiB and 100000 lines");
}

#[tokio::test]
async fn a_log_of_too_many_empty_lines_is_truncated_too() {
    let mut bench = bench(never);
    for _ in 0..Log::MAX_LINES + 5_000 {
        bench.write("").await;
    }
    let lines = bench.stored().await;
    assert_eq!(lines.len(), Log::MAX_LINES + 1);
    assert!(lines[Log::MAX_LINES].1.starts_with("the log was cut here"), "{:?}", lines.last());
}

#[tokio::test]
async fn secrets_are_masked_the_longest_first_and_line_by_line() {
    let mut bench = bench(never);
    bench.log.redact(vec![
        String::new(),
        "hunter".to_owned(),
        "hunter2".to_owned(),
        "{\nprivate-key\n}".to_owned(),
    ]);
    bench.write("a hunter2 and a hunter").await;
    bench.write("{ private-key }\0").await;
    let lines: Vec<_> = bench.stored().await.into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["a *** and a ***", "{ *** }\u{fffd}"]);
}

#[tokio::test]
async fn a_log_that_is_dropped_still_stores_what_it_has() {
    let Bench { log, mut chunks, .. } = bench(never);
    log.line(Stream::System, Level::Error, "last words").await;
    drop(log);
    assert_eq!(chunks.recv().await.unwrap().lines[0].line, "last words");
}
