//! Programs that attack their worker, and what becomes of them. This executable is the worker and the supervisor.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use ebbflow_containment as containment;
use ebbflow_containment::{Limits, Network, Plan, TERMINATE, TaskUser, TaskUsers};
use tempfile::TempDir;

fn main() -> ExitCode {
    if let Some(code) = containment::supervise() {
        return code;
    }
    containment::protect_this_process();
    let attacks: [(&str, fn()); 14] = [
        ("the exit code is the program's", the_exit_code_is_the_programs),
        ("the signal is the program's", the_signal_is_the_programs),
        ("a missing program is named", a_missing_program_is_named),
        ("the scratch folder is writable", the_scratch_folder_is_writable),
        ("the worker's environment stays hidden", the_workers_environment_stays_hidden),
        ("the worker cannot be killed", the_worker_cannot_be_killed),
        ("the supervisor cannot be killed", the_supervisor_cannot_be_killed),
        ("no variable reaches the supervisor", no_variable_reaches_the_supervisor),
        ("other folders stay hidden", other_folders_stay_hidden),
        ("a readable folder cannot be changed", a_readable_folder_cannot_be_changed),
        ("a daemon ends with its program", a_daemon_ends_with_its_program),
        ("everything ends with the worker", everything_ends_with_the_worker),
        ("a fork bomb stays within its limit", a_fork_bomb_stays_within_its_limit),
        ("memory and network are bounded", memory_and_network_are_bounded),
    ];
    for (name, attack) in attacks {
        attack();
        println!("test {name} ... ok");
    }
    println!("test result: ok. {} passed; 0 failed", attacks.len());
    ExitCode::SUCCESS
}

/// A scratch folder with a user of its own, if this process is root.
struct Attempt {
    scratch: TempDir,
    user: Option<TaskUser>,
    variables: Vec<(&'static str, &'static str)>,
}

/// The variables of a program: `PATH` and these.
fn variables(more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
    more.iter().map(|(name, value)| (name.into(), value.into())).chain([path]).collect()
}

impl Attempt {
    fn new(users: &TaskUsers) -> Self {
        let (scratch, user) = (tempfile::tempdir().unwrap(), users.acquire());
        let owner = user.as_ref().map(TaskUser::id);
        chown(scratch.path(), owner, owner).unwrap();
        Self { scratch, user, variables: Vec::new() }
    }

    fn plan(&self) -> Plan {
        let writable = vec![self.scratch.path().to_owned()];
        Plan { user: self.user.as_ref().map(TaskUser::id), writable, ..Plan::default() }
    }

    fn start(&self, plan: &Plan, script: &str) -> Child {
        Command::new("/proc/self/exe")
            .args(containment::supervisor_arguments(plan, "bash"))
            .args(["-c", script])
            .current_dir(self.scratch.path())
            .env_clear()
            .envs(containment::supervisor_environment(variables(&self.variables)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, plan: &Plan, script: &str) -> (ExitStatus, String) {
        let mut child = self.start(plan, script);
        // The end of the input would mean that the worker is dead.
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let text = [output.stdout, output.stderr].concat();
        (output.status, String::from_utf8_lossy(&text).into_owned())
    }
}

fn run(script: &str) -> (ExitStatus, String) {
    let attempt = Attempt::new(&TaskUsers::default());
    attempt.run(&attempt.plan(), script)
}

fn the_exit_code_is_the_programs() {
    let (status, text) = run("echo out; echo err >&2; exit 7");
    assert_eq!((status.code(), text.as_str()), (Some(7), "out\nerr\n"));
}

fn the_signal_is_the_programs() {
    assert_eq!(run("kill -KILL $$").0.signal(), Some(9));
}

fn a_missing_program_is_named() {
    let attempt = Attempt::new(&TaskUsers::default());
    let output = Command::new("/proc/self/exe")
        .args(containment::supervisor_arguments(&attempt.plan(), "no-such-program"))
        .envs(containment::supervisor_environment(variables(&[])))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start no-such-program"));
}

fn the_scratch_folder_is_writable() {
    let (status, text) =
        run("mkdir a && echo x > a/b && cat a/b && echo y > /dev/null && [ -r /etc/passwd ]");
    assert!(status.success(), "{text}");
    assert_eq!(text, "x\n");
}

fn the_workers_environment_stays_hidden() {
    let (status, text) = run(&format!("cat /proc/{}/environ", std::process::id()));
    assert!(!status.success() && text.contains("ermission denied"), "{text}");
}

fn the_worker_cannot_be_killed() {
    let (status, text) = run(&format!("kill -9 {}", std::process::id()));
    assert!(!status.success() && text.contains("not permitted"), "{text}");
}

fn the_supervisor_cannot_be_killed() {
    let (status, text) = run("kill -9 $PPID; echo survived; exit 3");
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("survived"), "{text}");
}

/// The loader complains once for every process whose variables name a library that does not exist.
fn no_variable_reaches_the_supervisor() {
    let mut attempt = Attempt::new(&TaskUsers::default());
    attempt.variables = vec![("LD_PRELOAD", "/no/such/library.so")];
    let (status, text) = attempt.run(&attempt.plan(), "echo $LD_PRELOAD");
    assert!(status.success(), "{text}");
    assert_eq!(text.matches("cannot be preloaded").count(), 1, "{text}");
    assert!(text.starts_with("/no/such/library.so\n"), "{text}");
}

fn other_folders_stay_hidden() {
    let users = TaskUsers::default();
    let (one, other) = (Attempt::new(&users), Attempt::new(&users));
    for folder in
        [one.scratch.path(), Path::new("/tmp"), Path::new("/root"), Path::new("/home"), Path::new("/")]
    {
        let (status, text) = other.run(&other.plan(), &format!("ls {}", folder.display()));
        assert!(!status.success() || !folder.exists(), "{} is visible: {text}", folder.display());
    }
    fs::write(one.scratch.path().join("secret"), "s").unwrap();
    fs::set_permissions(one.scratch.path().join("secret"), fs::Permissions::from_mode(0o644)).unwrap();
    let (status, text) = other.run(&other.plan(), &format!("cat {}/secret", one.scratch.path().display()));
    assert!(!status.success(), "{text}");
}

fn a_readable_folder_cannot_be_changed() {
    let (attempt, shared) = (Attempt::new(&TaskUsers::default()), tempfile::tempdir().unwrap());
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(shared.path().join("script"), "echo hello").unwrap();
    let plan = Plan { readable: vec![shared.path().to_owned()], ..attempt.plan() };
    let folder = shared.path().display();
    let (status, text) = attempt.run(&plan, &format!("bash {folder}/script && echo x > {folder}/new"));
    assert!(!status.success() && text.starts_with("hello\n"), "{text}");
    assert!(!shared.path().join("new").exists());
}

/// Whether a process is gone; a zombie is.
fn is_gone(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn a_daemon_ends_with_its_program() {
    let (status, text) =
        run("setsid bash -c 'trap \"\" TERM; while :; do read -t 9; done' < /dev/zero & echo $!");
    assert!(status.success(), "{text}");
    assert!(is_gone(text.trim()), "the daemon {text} is alive");
}

fn everything_ends_with_the_worker() {
    let attempt = Attempt::new(&TaskUsers::default());
    let mut child = attempt.start(&attempt.plan(), "trap '' TERM; sleep 3600 & echo $!; wait; wait");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    child.stdin.as_mut().unwrap().write_all(&[TERMINATE]).unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(is_gone(line.trim()));
}

fn a_fork_bomb_stays_within_its_limit() {
    let attempt = Attempt::new(&TaskUsers::default());
    if attempt.user.is_none() {
        // Only a user of its own can be limited; the documentation says so.
        return;
    }
    let plan = Plan { limits: Limits { processes: Some(20), ..Limits::default() }, ..attempt.plan() };
    let (status, text) = attempt.run(&plan, "for i in $(seq 50); do sleep 3600 & done; echo never; exit 0");
    assert!(!status.success() || text.contains("Resource temporarily unavailable"), "{text}");
}

fn memory_and_network_are_bounded() {
    let attempt = Attempt::new(&TaskUsers::default());
    let limits =
        Limits { memory: Some(64 << 20), file_size: Some(1 << 20), cpus: Some(1), ..Limits::default() };
    let plan = Plan { limits, ..attempt.plan() };
    let (status, text) = attempt.run(&plan, "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}");
    assert!(!status.success() || !text.contains("300000000"), "{text}");
    let (status, _) =
        attempt.run(&plan, "head -c 2000000 /dev/zero > large; [ $(stat -c %s large) -le 1048576 ]");
    assert!(status.success());
    assert_eq!(attempt.run(&plan, "nproc").1, "1\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    assert_eq!(attempt.run(&attempt.plan(), &connect).1, "connected\n");
    let plan = Plan { network: Network::None, ..attempt.plan() };
    let (status, text) = attempt.run(&plan, &connect);
    assert!(!status.success() && text.contains("unreachable"), "{text}");
}
