//! Real programs that write messages.

use model::{Done, Series};
use serde_json::{Value, json};

use super::MAX_MESSAGE_BYTES;
use crate::task_runners::tests::Bench;

fn bash(command: &str) -> Bench {
    Bench::new("bash", json!({ "command": command }))
}

fn python(code: &str) -> Bench {
    Bench::new("python", json!({ "code": code }))
}

#[tokio::test]
async fn bash_reports_progress_checkpoints_and_metrics() {
    let bench = bash(
        r#"echo '{"progress": 0.25, "message": "loading"}' >> "$EBB_MESSAGES"
           echo '{"metric": {"rows": 12, "bytes": 3.5}, "checkpoint": {"phase": "load", "state": {"row": 7}}}' > $EBB_MESSAGES
           printf '{"progress": 0.5}' >> "$EBB_MESSAGES""#,
    );
    assert_eq!(bench.run().await, Ok(Value::Null));
    let (progress, checkpoints) = bench.reported().await;
    assert_eq!(
        progress.done,
        Some(Done { fraction: 0.5, message: None }),
        "even an unterminated last line counts"
    );
    assert_eq!(checkpoints.last(), Some(&json!({"phase": "load", "state": {"row": 7}})));
    let last = |name: &str| progress.metrics.get(name).and_then(Series::last);
    assert_eq!((last("rows"), last("bytes")), (Some(12.0), Some(3.5)));
    assert_eq!(bench.lines().await, Vec::<String>::new());
}

#[tokio::test]
async fn python_keeps_the_pipe_open_and_logs_with_levels() {
    let bench = python(
        "import json, os\n\
         with open(os.environ['EBB_MESSAGES'], 'a', buffering=1) as messages:\n\
         \x20   for number in range(1, 101):\n\
         \x20       print(json.dumps({'progress': number / 100, 'metric': {'rows': number}}), file=messages)\n\
         \x20   print(json.dumps({'log': {'level': 'WARNING', 'message': 'slow\\nvery'}}), file=messages)\n\
         \x20   print(json.dumps({'log': {'message': 'fine'}}), file=messages)\n",
    );
    assert_eq!(bench.run().await, Ok(Value::Null));
    let (progress, _) = bench.reported().await;
    assert_eq!(progress.done, Some(Done { fraction: 1.0, message: None }));
    assert_eq!(progress.metrics["rows"].last(), Some(100.0));
    assert_eq!(bench.levels().await, ["warning: slow", "warning: very", "info: fine"]);
}

#[tokio::test]
async fn a_report_is_stored_while_the_program_runs() {
    let bench = bash(r#"mkfifo gate; echo '{"checkpoint": 1}' > "$EBB_MESSAGES"; cat gate"#);
    let attempt = bench.begin();
    bench.stored().await;
    assert!(!attempt.is_finished());
    bench.context.cancel.cancel();
    attempt.await.unwrap().unwrap_err();
    assert_eq!(bench.reported().await.1, [json!(1)]);
}

#[tokio::test]
async fn hostile_messages_neither_fail_nor_flood_an_attempt() {
    let bench = python(
        "import os\n\
         pipe = os.environ['EBB_MESSAGES']\n\
         with open(pipe, 'wb') as messages:\n\
         \x20   messages.write(b'{\"checkpoint\": \"' + b'x' * 2_000_000 + b'\"}\\n')\n\
         \x20   messages.write(b'\\xff\\xfe\\n[1]\\n{\"progress\": 7}\\n{\"unknown\": 1}\\n{\"metric\": {\"\": 1}}\\n\\n')\n\
         \x20   messages.write(b'[' * 100_000 + b'\\n')\n\
         \x20   messages.write(b'nonsense\\n' * 1_000)\n\
         \x20   messages.write(b'{\"progress\": 0.75}\\n')\n\
         os.remove(pipe)\n\
         open(pipe, 'w').write('{\"progress\": 0.1}\\n')\n\
         print('done')\n",
    );
    assert_eq!(bench.run().await, Ok(Value::Null));
    let (progress, checkpoints) = bench.reported().await;
    assert_eq!((progress.done.map(|done| done.fraction), checkpoints.len()), (Some(0.75), 0));
    let lines = bench.lines().await;
    let complaints: Vec<_> = lines.iter().filter(|line| line.contains("EBB_MESSAGES")).collect();
    assert_eq!(complaints.len(), 10, "{complaints:?}");
    assert!(complaints[0].contains(&MAX_MESSAGE_BYTES.to_string()), "{complaints:?}");
    assert!(complaints[9].contains("silently"), "{complaints:?}");
    assert_eq!(lines.len(), 11);
}

#[tokio::test]
async fn a_process_that_escapes_and_floods_the_pipe_does_not_hold_up_the_end() {
    let bench = python(
        "import os\n\
         ready = os.pipe()\n\
         if os.fork() == 0:\n\
         \x20   os.setsid()\n\
         \x20   os.dup2(os.open(os.devnull, os.O_RDWR), 1)\n\
         \x20   os.dup2(1, 2)\n\
         \x20   messages = os.open(os.environ['EBB_MESSAGES'], os.O_WRONLY)\n\
         \x20   os.write(ready[1], b'x')\n\
         \x20   while True:\n\
         \x20       os.write(messages, b' ' * 4095 + b'\\n')\n\
         os.read(ready[0], 1)\n",
    );
    // Once nobody reads the pipe, the process ends with an exception.
    assert_eq!(bench.run().await, Ok(Value::Null));
}

#[tokio::test]
async fn secrets_are_redacted_from_reports() {
    let bench = bash(
        r#"echo '{"progress": 0.5, "message": "using hunter2-hunter2"}' > "$EBB_MESSAGES"
           echo '{"checkpoint": {"phase": "p", "state": "hunter2-hunter2"}}' > "$EBB_MESSAGES""#,
    );
    bench.context.log.redact(["hunter2-hunter2".to_owned()]);
    bench.run().await.unwrap();
    let (progress, checkpoints) = bench.reported().await;
    let stored = format!("{progress:?} {checkpoints:?}");
    assert!(!stored.contains("hunter2"), "{stored}");
}

#[tokio::test]
async fn lines_have_the_level_that_they_name() {
    let bench = bash("echo 'ERROR: no'; echo fine; echo '[debug] x' >&2; echo odd >&2");
    bench.run().await.unwrap();
    let mut levels = bench.levels().await;
    levels.sort();
    assert_eq!(levels, ["debug: [debug] x", "error: ERROR: no", "info: fine", "warning: odd"]);
}
