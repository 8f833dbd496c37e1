use serde_json::json;
use testkit::{peak_memory, runs_alone};

use super::{Lines, MAX_LINE_BYTES};
use crate::log::Log;
use crate::task_runners::tests::Bench;

fn log() -> Log {
    Bench::new("bash", json!({})).context.log
}

fn bash(command: &str) -> Bench {
    Bench::new("bash", json!({ "command": command }))
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

#[tokio::test]
async fn a_flood_of_lines_does_not_hold_up_a_program() {
    let bench = bash("yes '' | head -n 300000; yes x | head -n 300000 >&2; echo 7 > $EBB_OUTPUT");
    assert_eq!(bench.run().await, Ok(json!(7)));
    let lines = bench.lines().await;
    assert_eq!(lines.len(), crate::log::Log::MAX_LINES + 1);
    assert!(lines.last().unwrap().starts_with("system: the log was cut here"), "{:?}", lines.last());
}

#[tokio::test]
async fn a_log_of_a_gigabyte_is_cut_and_takes_little_memory() {
    if !runs_alone("process::output::tests::a_log_of_a_gigabyte_is_cut_and_takes_little_memory") {
        return;
    }
    host::limit_arenas();
    // Half of it in lines, half of it in a line that does not end.
    let lines = "yes \"$(printf 'x%.0s' {1..4000})\" | head -c 536870912";
    let line = "head -c 536870912 /dev/zero | tr '\\0' y";
    let bench = bash(&format!("{lines}; {line}; echo 7 > $EBB_OUTPUT"));
    let before = peak_memory("self");
    assert_eq!(bench.run().await, Ok(json!(7)));
    let took = peak_memory("self") - before;
    assert!(took < 256 << 20, "{} MiB", took >> 20);
    let lines = bench.lines().await;
    assert!(lines.iter().map(String::len).sum::<usize>() < 12 << 20, "{} lines", lines.len());
    assert!(lines.last().unwrap().starts_with("system: the log was cut here"));
}
