//! Programs that attack their worker, and what becomes of them. This executable is the worker, the zygote and the supervisors.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use ebbflow_containment as containment;
use ebbflow_containment::{Limits, Network, Plan, Request, Supervisors, TERMINATE, TaskUsers};
use rustix::process::{Pid, Signal, geteuid, kill_process};

#[path = "attacks/resources.rs"]
mod resources;
#[path = "attacks/running.rs"]
mod running;

use resources::{
    a_control_group_ends_with_its_attempt, files_share_the_disk_space_of_their_attempt,
    processes_share_the_memory_of_their_attempt,
};
use running::{Attempt, GROUPS, Running, SUPERVISORS};

fn main() -> ExitCode {
    if let Some(code) = containment::serve() {
        return code;
    }
    containment::protect_this_process();
    println!("control groups limit: {:?}", GROUPS.controllers());
    let attacks: [(&str, fn()); 23] = [
        ("the exit code is the program's", the_exit_code_is_the_programs),
        ("the signal is the program's", the_signal_is_the_programs),
        ("a missing program is named", a_missing_program_is_named),
        ("what a program used is counted", what_a_program_used_is_counted),
        ("the scratch folder is writable", the_scratch_folder_is_writable),
        ("the worker's environment stays hidden", the_workers_environment_stays_hidden),
        ("the supervisor's memory stays hidden", the_supervisors_memory_stays_hidden),
        ("the worker cannot be killed", the_worker_cannot_be_killed),
        ("the supervisor cannot be killed", the_supervisor_cannot_be_killed),
        ("no variable reaches the supervisor", no_variable_reaches_the_supervisor),
        ("other folders stay hidden", other_folders_stay_hidden),
        ("a readable folder cannot be changed", a_readable_folder_cannot_be_changed),
        ("a daemon ends with its program", a_daemon_ends_with_its_program),
        ("everything ends with the worker", everything_ends_with_the_worker),
        ("everything ends with the supervisor", everything_ends_with_the_supervisor),
        ("a zygote that was killed is replaced", a_zygote_that_was_killed_is_replaced),
        ("the zygote ends with its worker", the_zygote_ends_with_its_worker),
        ("a fork bomb stays within its limit", a_fork_bomb_stays_within_its_limit),
        ("processes share the memory of their attempt", processes_share_the_memory_of_their_attempt),
        ("files share the disk space of their attempt", files_share_the_disk_space_of_their_attempt),
        ("a control group ends with its attempt", a_control_group_ends_with_its_attempt),
        ("memory and network are bounded", memory_and_network_are_bounded),
        ("the metadata server is out of reach", the_metadata_server_is_out_of_reach),
    ];
    let as_whom = if geteuid().is_root() { "root" } else { "another user" };
    for (name, attack) in attacks {
        attack();
        println!("test as {as_whom}: {name} ... ok");
    }
    println!("test result: ok. {} passed; 0 failed", attacks.len());
    if geteuid().is_root() { again_as_another_user() } else { ExitCode::SUCCESS }
}

/// The user of the image. Its programs are users of their own no more, so Landlock must keep them in.
const USER: u32 = 65_532;

fn again_as_another_user() -> ExitCode {
    let again = Command::new("/proc/self/exe").uid(USER).gid(USER).status().unwrap();
    if again.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn what_a_program_used_is_counted() {
    let attempt = Attempt::new(&TaskUsers::default());
    let script = "head -c 60000000 /dev/zero | tail -c 60000000 > /dev/null";
    let (report, text) = attempt.start(&attempt.plan(), script).end();
    let usage = report.unwrap().usage().unwrap();
    // `tail` holds all of it before it writes any.
    assert!(usage.cpu_seconds > 0.0 && usage.peak_memory_bytes > 60_000_000, "{usage:?} {text}");
}

fn a_missing_program_is_named() {
    let attempt = Attempt::new(&TaskUsers::default());
    let why = |request: &Request| {
        let report = Running::start(&SUPERVISORS, request).end().0.unwrap();
        report.status().unwrap_err().kind()
    };
    let request = attempt.request(&attempt.plan(), "true");
    assert_eq!(why(&Request { program: "no-such-program".into(), ..request.clone() }), ErrorKind::NotFound);
    let hidden = Request { program: std::env::current_exe().unwrap().into(), ..request.clone() };
    assert_eq!(why(&hidden), ErrorKind::PermissionDenied);
    let long = Request { arguments: vec!["x".repeat(4 << 20).into()], ..request.clone() };
    assert_eq!(why(&long), ErrorKind::ArgumentListTooLong);
    assert_eq!(why(&Request { arguments: vec!["\0".into()], ..request }), ErrorKind::InvalidInput);
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

/// The supervisor has the variables of its program in its memory, and the zygote what those of others will start from.
fn the_supervisors_memory_stays_hidden() {
    for file in ["environ", "mem", "maps", "fd/0"] {
        let (status, text) = run(&format!("cat /proc/$PPID/{file}"));
        assert!(!status.success() && text.contains("ermission denied"), "{file}: {text}");
    }
    let attempt = Attempt::new(&TaskUsers::default());
    let mut running = attempt.start(&attempt.plan(), "echo $PPID; exec sleep 3600");
    let supervisor = running.line();
    // For a process of the same user, only if it is dumpable: those of the tests are not restricted.
    for process in [&parent(&supervisor), &supervisor] {
        let environment = fs::read(format!("/proc/{process}/environ"));
        assert!(geteuid().is_root() || environment.is_err(), "{environment:?}");
    }
    running.supervisor.shutdown(Shutdown::Write).unwrap();
    running.end();
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
    let mut running = attempt.start(&attempt.plan(), "trap '' TERM; sleep 3600 & echo $!; wait; wait");
    let child = running.line();
    running.supervisor.write_all(&[TERMINATE]).unwrap();
    // As if the worker were dead, except that it still listens.
    running.supervisor.shutdown(Shutdown::Write).unwrap();
    let (report, text) = running.end();
    assert_eq!(report.unwrap().status().unwrap().signal(), Some(9), "{text}");
    assert!(is_gone(&child));
}

/// A process closes its files before it is gone.
fn wait_for_the_end(pid: &str) {
    while !is_gone(pid) {
        std::thread::yield_now();
    }
}

fn kill(pid: &str) {
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// The zygote kills what a supervisor leaves behind. The others stay.
fn everything_ends_with_the_supervisor() {
    let users = TaskUsers::default();
    let (attempt, other) = (Attempt::new(&users), Attempt::new(&users));
    let mut spared = other.start(&other.plan(), "echo $$; read -t 3600 < <(sleep 3600)");
    let other_program = spared.line();
    let mut running = attempt.start(&attempt.plan(), "setsid sleep 3600 & echo $PPID $$ $!; wait");
    let line = running.line();
    let [supervisor, program, daemon]: [&str; 3] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
    kill(supervisor);
    assert_eq!(running.end(), (None, String::new()), "{line}");
    wait_for_the_end(program);
    wait_for_the_end(daemon);
    assert!(!is_gone(&other_program));
    spared.supervisor.shutdown(Shutdown::Write).unwrap();
    assert!(spared.end().0.is_some());
}

/// The process that forked a supervisor.
fn parent(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().to_owned()
}

fn a_zygote_that_was_killed_is_replaced() {
    let attempt = Attempt::new(&TaskUsers::default());
    let mut running = attempt.start(&attempt.plan(), "echo $PPID; read -t 3600 < <(sleep 3600); exit 3");
    let supervisor = running.line();
    let zygote = parent(&supervisor);
    kill(&zygote);
    wait_for_the_end(&zygote);
    assert_eq!(attempt.run(&attempt.plan(), "exit 5").0.code(), Some(5));
    assert!(!is_gone(&supervisor), "the supervisor does not need its zygote");
    running.supervisor.shutdown(Shutdown::Write).unwrap();
    assert_eq!(running.end().0.unwrap().status().unwrap().signal(), Some(9));
}

fn the_zygote_ends_with_its_worker() {
    let (attempt, worker) = (Attempt::new(&TaskUsers::default()), Supervisors::default());
    let mut running =
        Running::start(&worker, &attempt.request(&attempt.plan(), "echo $PPID; exec sleep 3600"));
    let zygote = parent(&running.line());
    drop(worker);
    assert!(!is_gone(&zygote), "it looks after its supervisors");
    running.supervisor.shutdown(Shutdown::Write).unwrap();
    assert!(running.end().0.is_some());
    wait_for_the_end(&zygote);
}

fn a_fork_bomb_stays_within_its_limit() {
    let users = TaskUsers::default();
    let (attempt, other) = (Attempt::new(&users), Attempt::new(&users));
    if !GROUPS.controllers().processes && !has_namespaces(&attempt) {
        return;
    }
    // What the worker's user runs besides does not count.
    let mut many = other.start(&other.plan(), "for i in $(seq 30); do sleep 3600 & done; echo started; wait");
    assert_eq!(many.line(), "started");
    let plan = Plan { limits: Limits { processes: Some(20), ..Limits::default() }, ..attempt.plan() };
    let script = "for i in $(seq 10); do sleep 3600 & done; echo ten; for i in $(seq 40); do sleep 3600 & done; echo never";
    let (status, text) = attempt.run(&plan, script);
    assert!(text.contains("ten"), "{text}");
    assert!(!status.success() || text.contains("Resource temporarily unavailable"), "{text}");
    many.supervisor.shutdown(Shutdown::Write).unwrap();
    many.end();
}

/// Whether the system lets this user create namespaces; that of a container may not.
fn has_namespaces(attempt: &Attempt) -> bool {
    let plan = Plan { network: Network::None, ..attempt.plan() };
    let report = Running::start(&SUPERVISORS, &attempt.request(&plan, "true")).end().0.unwrap();
    let has_them = report.status().is_ok();
    if !has_them {
        assert!(attempt.user.is_none(), "root can always create them");
        assert!(!is_complete(), "a complete test needs user namespaces");
        println!(
            "skipped: without root and user namespaces, programs have a network and any number of processes"
        );
    }
    has_them
}

/// Whether what this machine cannot test fails instead of being skipped.
fn is_complete() -> bool {
    std::env::var("GATE").is_ok_and(|gate| gate == "complete")
}

fn memory_and_network_are_bounded() {
    let attempt = Attempt::new(&TaskUsers::default());
    let limits = Limits { memory: Some(64 << 20), disk: Some(1 << 20), cpus: Some(1), ..Limits::default() };
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
    if !has_namespaces(&attempt) {
        return;
    }
    let plan = Plan { network: Network::None, ..attempt.plan() };
    let (status, text) = attempt.run(&plan, &connect);
    assert!(!status.success() && text.contains("unreachable"), "{text}");
}

/// By every spelling that a program can use, and by UDP, which asks for its name.
fn the_metadata_server_is_out_of_reach() {
    let attempt = Attempt::new(&TaskUsers::default());
    if !has_namespaces(&attempt) {
        return;
    }
    let plan = Plan { network: Network::None, ..attempt.plan() };
    for address in [
        "tcp/169.254.169.254/80",
        "tcp/::ffff:169.254.169.254/80",
        "tcp/fd00:ec2::254/80",
        "udp/169.254.169.254/53",
    ] {
        let (status, text) =
            attempt.run(&plan, &format!("exec 3<>/dev/{address} && echo x >&3 && echo reached"));
        // Without an interface there is no way to an address, and none of our own to call from.
        let has_no_way =
            ["unreachable", "Cannot assign requested address"].iter().any(|why| text.contains(why));
        assert!(!status.success() && has_no_way, "{address}: {text}");
    }
}
