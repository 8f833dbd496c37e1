use serde_json::json;

use super::{Lines, MAX_LINE_BYTES};
use crate::log::Log;
use crate::task_runners::tests::Bench;

fn log() -> Log {
    Bench::new("bash", json!({})).context.log
}

async fn lines(bytes: &[u8], log: Log) -> Vec<String> {
    let mut lines = Lines::of(bytes, log);
    let mut found = Vec::new();
    while let Some(line) = lines.next().await {
        found.push(line);
    }
    found
}

async fn check(bytes: &[u8], expected: &[&str]) {
    assert_eq!(lines(bytes, log()).await, expected);
}

#[tokio::test]
async fn a_line_ends_at_a_line_break_or_at_the_end_of_the_output() {
    check(b"", &[]).await;
    check(b"one\ntwo\n", &["one", "two"]).await;
    check(b"one\r\n\ntwo", &["one", "", "two"]).await;
    check(b"bad \xff byte\n", &["bad \u{fffd} byte"]).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_split() {
    let full = "x".repeat(MAX_LINE_BYTES);
    check(format!("{full}\nnext").as_bytes(), &[&full, "next"]).await;
    check(format!("{full}yz\nnext").as_bytes(), &[&full, "yz", "next"]).await;
}

#[tokio::test]
async fn a_split_never_breaks_a_character() {
    let almost = "x".repeat(MAX_LINE_BYTES - 1);
    check(format!("{almost}é!\n").as_bytes(), &[&almost, "é!"]).await;
}

#[tokio::test]
async fn a_split_never_breaks_a_secret() {
    let secret = "hunter2-hunter2";
    for before in (MAX_LINE_BYTES - 40)..(MAX_LINE_BYTES + 20) {
        let log = log();
        log.redact(vec![secret.to_owned()]);
        let line = format!("{}{secret}{}\n", "x".repeat(before), "y".repeat(100));
        let found: String =
            lines(line.as_bytes(), log.clone()).await.iter().map(|line| log.redacted(line)).collect();
        assert_eq!(found.replace(['x', 'y'], ""), "***", "{before}");
    }
}
