//! Real processes, started by task types.
//!
//! A process that a test must watch holds a connection to the test: it sends lines about its progress, and the connection
//! closes when the last process that holds it is dead.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use model::{ErrorClass, Failure};

use crate::task_runners::tests::Bench;

fn bash(command: &str) -> Bench {
    Bench::new("bash", json!({ "command": command }))
}

fn python(code: &str) -> Bench {
    Bench::new("python", json!({ "code": code }))
}

/// Python code in which `connect()` opens a connection to the test.
struct Watched {
    bench: Bench,
    listener: TcpListener,
}

impl Watched {
    async fn new(code: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let code = [PRELUDE, code].concat();
        let bench = Bench::new("python", json!({ "code": code, "args": [address.port()] }));
        Self { bench, listener }
    }

    async fn ready(&self) -> BufReader<TcpStream> {
        let mut wire = BufReader::new(self.listener.accept().await.unwrap().0);
        assert_eq!(next_line(&mut wire).await, "ready");
        wire
    }
}

/// Python, because a trap of bash loses a signal that arrives while it starts a command.
const PRELUDE: &str = "
import os, signal, socket, sys

def connect():
    wire = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    wire.sendall(b'ready\\n')
    return wire

def block_sigterm():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

def wait_for_sigterm():
    signal.sigwait({signal.SIGTERM})

";

async fn next_line(wire: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    wire.read_line(&mut line).await.unwrap();
    line.trim_end().to_owned()
}

async fn all_dead(mut wire: BufReader<TcpStream>) {
    // A process that is killed with something unread breaks the connection instead of closing it.
    let _ = wire.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn every_line_is_logged_even_an_unterminated_last_one() {
    let bench = bash(r"echo one; printf 'caf\xc3\xa9 \xff\n'; printf two >&2");
    assert_eq!(bench.run().await, Ok(Value::Null));
    let mut lines = bench.lines().await;
    lines.sort();
    assert_eq!(lines, ["stderr: two", "stdout: café \u{fffd}", "stdout: one"]);
}

#[tokio::test]
async fn a_process_after_the_program_in_a_pipe_may_still_write() {
    let bench = bash("exec > >(sed s/^/said:/); echo hello");
    bench.run().await.unwrap();
    assert_eq!(bench.lines().await, ["stdout: said:hello"]);
}

#[tokio::test]
async fn a_program_reads_its_document_and_writes_its_output() {
    let bench = python(
        "import json, os\n\
         document = json.load(open(os.environ['EBB_INPUT']))\n\
         json.dump({'day': document['inputs']['day']}, open(os.environ['EBB_OUTPUT'], 'w'))",
    );
    assert_eq!(bench.run().await, Ok(json!({"day": "2026-01-01"})));
}

#[tokio::test]
async fn an_output_that_is_not_json_is_a_permanent_failure_with_its_position() {
    let failure = bash(r#"printf '{"a":\n  oops}' > "$EBB_OUTPUT""#).run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("EBB_OUTPUT is not valid JSON"), "{}", failure.message);
    assert!(failure.message.contains("line 2 column"), "{}", failure.message);
}

#[tokio::test]
async fn an_output_that_is_too_large_or_not_a_file_is_not_read() {
    let failure = bash(r#"head -c 1048577 /dev/zero > "$EBB_OUTPUT""#).run().await.unwrap_err();
    assert!(failure.message.contains("store it elsewhere"), "{}", failure.message);
    let failure = bash(r#"mkfifo "$EBB_OUTPUT""#).run().await.unwrap_err();
    assert!(failure.message.contains("regular file"), "{}", failure.message);
}

#[tokio::test]
async fn the_environment_is_an_allow_list_with_the_configs_and_ours() {
    let config = json!({"command": "env", "env": {"REGION": "eu", "N": 3, "EBB_TASK": "forged"}});
    let bench = Bench::new("bash", config);
    bench.run().await.unwrap();
    let lines = bench.lines().await;
    let has = |line: &str| assert!(lines.contains(&format!("stdout: {line}")), "{line} is not in {lines:?}");
    has("REGION=eu");
    has("N=3");
    has("EBB_TASK=load");
    has("EBB_ATTEMPT=2");
    has("EBB_RUN_ID=00000000-0000-0000-0000-000000000007");
    let allowed = "PATH HOME LANG LC_ALL TZ TMPDIR REGION N EBB_INPUT EBB_OUTPUT EBB_FAILURE EBB_MESSAGES EBB_RUN_ID EBB_TASK EBB_ATTEMPT";
    // Bash sets these itself.
    let allowed: Vec<_> = allowed.split(' ').chain(["PWD", "SHLVL", "_"]).collect();
    for line in &lines {
        let name = line.trim_start_matches("stdout: ").split('=').next().unwrap();
        assert!(allowed.contains(&name), "{name} leaked");
    }
}

#[tokio::test]
async fn each_process_works_in_a_fresh_directory_that_is_gone_afterwards() {
    let bench = bash(r#"[ -z "$(ls -A)" ] && [ "$PWD" = "$TMPDIR" ] && touch left-over && pwd"#);
    bench.run().await.unwrap();
    let lines = bench.lines().await;
    assert!(lines[0].contains(&bench.folder.path().display().to_string()), "{lines:?}");
    assert_eq!(bench.folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_script_is_found_from_its_folder_and_given_its_arguments() {
    let bench = Bench::new("bash", json!({"script": "greet.sh", "args": ["a b", 3]}));
    std::fs::write(bench.folder.path().join("greet.sh"), "echo \"$1/$2\"").unwrap();
    bench.run().await.unwrap();
    assert_eq!(bench.lines().await, ["stdout: a b/3"]);
}

#[tokio::test]
async fn a_script_that_is_missing_is_a_permanent_failure() {
    let failure = Bench::new("python", json!({"script": "nope.py"})).run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("nope.py"), "{}", failure.message);
}

#[tokio::test]
async fn exit_codes_are_classified_and_reported_with_the_last_line_of_stderr() {
    let check = async |command: &str, class, code, words: &str| {
        let failure = bash(command).run().await.unwrap_err();
        assert_eq!((failure.class, failure.exit_code), (class, Some(code)), "{command}");
        assert_eq!(failure.message, words, "{command}");
    };
    check("exit 3", ErrorClass::ProgramFailed, 3, "exited with code 3").await;
    check("echo a >&2; echo b >&2; echo >&2; exit 1", ErrorClass::ProgramFailed, 1, "exited with code 1: b")
        .await;
    let hinted = "echo error: b >&2; echo 'hint: try c' >&2; exit 1";
    check(hinted, ErrorClass::ProgramFailed, 1, "exited with code 1: error: b").await;
    let words = "exited with code 125 (the program that should have started it failed)";
    check("exit 125", ErrorClass::ProgramFailed, 125, words).await;
    check("exit 126", ErrorClass::ProgramFailed, 126, "exited with code 126 (found, but not executable)")
        .await;
    let words = "exited with code 137 (a command in it was killed by signal 9)";
    check("exit 137", ErrorClass::ProgramFailed, 137, words).await;
}

#[tokio::test]
async fn an_unknown_command_is_reported_with_its_name() {
    let failure = bash("no-such-command").run().await.unwrap_err();
    assert_eq!((failure.class, failure.exit_code), (ErrorClass::ProgramFailed, Some(127)));
    assert!(failure.message.contains("command not found on this worker"), "{}", failure.message);
    assert!(failure.message.contains("no-such-command"), "{}", failure.message);
}

#[tokio::test]
async fn an_exception_in_python_is_reported_with_its_message() {
    let failure = python("print(1 / 0)").run().await.unwrap_err();
    assert_eq!((failure.class, failure.exit_code), (ErrorClass::ProgramFailed, Some(1)));
    assert_eq!(failure.message, "exited with code 1: ZeroDivisionError: division by zero");
}

#[tokio::test]
async fn exceptions_that_come_again_are_permanent() {
    for (code, exception) in [
        ("x = = 1", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("from os import no_such_name", "ImportError"),
        ("open('/no/such/file')", "FileNotFoundError"),
        ("raise PermissionError('not yours')", "PermissionError"),
    ] {
        let failure = python(code).run().await.unwrap_err();
        assert_eq!(
            (failure.class, failure.exit_code),
            (ErrorClass::Permanent, Some(1)),
            "{}",
            failure.message
        );
        assert!(
            failure.message.starts_with(&format!("exited with code 1: {exception}")),
            "{}",
            failure.message
        );
    }
    let failure = python("raise ValueError('SyntaxError: quoted')").run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ProgramFailed);
    let failure = bash("echo 'PermissionError: not Python' >&2; exit 1").run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ProgramFailed);
}

#[tokio::test]
async fn a_program_describes_its_failure_in_a_file() {
    let code = r#"
import json, os, sys
with open(os.environ["EBB_FAILURE"], "w") as file:
    json.dump({"class": "permanent", "message": "no such customer", "detail": {"id": 7}}, file)
sys.exit(3)
"#;
    let failure = python(code).run().await.unwrap_err();
    let described = Failure {
        exit_code: Some(3),
        detail: Some(json!({"id": 7})),
        ..Failure::permanent("no such customer")
    };
    assert_eq!(failure, described);
    let done = bash(r#"echo '{"class": "permanent"}' > "$EBB_FAILURE""#).run().await;
    assert_eq!(done, Ok(Value::Null), "a program that exits with 0 succeeded");
}

#[tokio::test]
async fn a_description_that_cannot_be_read_is_ignored_and_logged() {
    for (command, problem) in [
        (r#"echo oops > "$EBB_FAILURE"; exit 4"#, "not of the form"),
        (r#"echo '{"class": "worker_lost"}' > "$EBB_FAILURE"; exit 4"#, "its class is `worker_lost`"),
        (r#"ln -s /etc/passwd "$EBB_FAILURE"; exit 4"#, "no longer a regular file"),
        (r#"head -c 70000 /dev/zero > "$EBB_FAILURE"; exit 4"#, "70000 bytes, which is too many"),
    ] {
        let bench = bash(command);
        let failure = bench.run().await.unwrap_err();
        assert_eq!((failure.class, failure.exit_code), (ErrorClass::ProgramFailed, Some(4)), "{command}");
        let lines = bench.lines().await;
        assert!(lines.iter().any(|line| line.contains(problem)), "{command}: {lines:?}");
    }
}

#[tokio::test]
async fn a_process_that_was_killed_is_distinguished_from_one_that_failed() {
    let failure = bash("kill -KILL $$").run().await.unwrap_err();
    let message = "killed by signal 9 (possibly out of memory)";
    assert_eq!(failure, Failure { signal: Some(9), ..Failure::new(ErrorClass::Killed, message) });
    let failure = bash("kill -TERM $$").run().await.unwrap_err();
    let message = "killed by signal 15 (terminated by a person or another program)";
    assert_eq!(failure, Failure { signal: Some(15), ..Failure::permanent(message) });
}

#[tokio::test]
async fn without_the_interpreter_the_error_says_what_to_install() {
    let config = json!({"code": "pass", "env": {"PATH": "/nowhere"}});
    let failure = Bench::new("python", config).run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("`python3` is not on the PATH"), "{}", failure.message);
    assert!(failure.message.contains("install Python 3"), "{}", failure.message);
}

#[tokio::test]
async fn background_processes_end_with_their_program() {
    let code = "
wire = connect()
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    signal.pause()
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let wire = watched.ready().await;
    assert_eq!(attempt.await.unwrap(), Ok(Value::Null));
    all_dead(wire).await;
}

#[tokio::test]
async fn a_timeout_ends_the_whole_process_group() {
    let code = "
if os.fork() == 0:
    wire = connect()
    signal.pause()
os.wait()
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let wire = watched.ready().await;
    watched.bench.clock.advance(chrono::Duration::seconds(60));
    let message = "the attempt took longer than its timeout_seconds of 60";
    assert_eq!(attempt.await.unwrap(), Err(Failure::new(ErrorClass::Timeout, message)));
    all_dead(wire).await;
}

#[tokio::test]
async fn a_process_that_is_asked_to_stop_may_clean_up() {
    let code = "
block_sigterm()
wire = connect()
wait_for_sigterm()
print('cleaned up')
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let _wire = watched.ready().await;
    watched.bench.context.cancel.cancel();
    let failure = attempt.await.unwrap().unwrap_err();
    assert_eq!(failure.class, ErrorClass::Killed);
    assert!(failure.message.contains("stopped before it was done"), "{}", failure.message);
    assert!(watched.bench.lines().await.contains(&"stdout: cleaned up".to_owned()));
}

#[tokio::test]
async fn child_processes_have_the_same_grace_period_when_the_program_ends_first() {
    let code = "
leader = os.getpid()
if os.fork() == 0:
    block_sigterm()
    wire = connect()
    wait_for_sigterm()
    while os.getppid() == leader:
        os.sched_yield()
    print('child cleaned up')
else:
    os.wait()
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let _wire = watched.ready().await;
    watched.bench.context.cancel.cancel();
    attempt.await.unwrap().unwrap_err();
    assert!(watched.bench.lines().await.contains(&"stdout: child cleaned up".to_owned()));
}

#[tokio::test]
async fn a_process_that_does_not_stop_within_the_grace_period_is_killed() {
    let code = "
block_sigterm()
wire = connect()
wait_for_sigterm()
wire.sendall(b'ignored\\n')
wait_for_sigterm()
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let mut wire = watched.ready().await;
    watched.bench.context.cancel.cancel();
    assert_eq!(next_line(&mut wire).await, "ignored");
    assert!(!attempt.is_finished());
    watched.bench.clock.advance(chrono::Duration::seconds(30));
    attempt.await.unwrap().unwrap_err();
    all_dead(wire).await;
}

#[tokio::test]
async fn dropping_an_attempt_kills_its_process_group() {
    let code = "
block_sigterm()
if os.fork() == 0:
    wire = connect()
    signal.pause()
os.wait()
";
    let watched = Watched::new(code).await;
    let attempt = watched.bench.begin();
    let wire = watched.ready().await;
    attempt.abort();
    all_dead(wire).await;
}

#[tokio::test]
async fn a_missing_scratch_directory_is_a_transient_failure() {
    let mut bench = bash("true");
    bench.context.scratch = bench.folder.path().join("missing");
    let failure = bench.run().await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Transient);
    assert!(failure.message.contains("cannot create the scratch directory at"), "{}", failure.message);
}
