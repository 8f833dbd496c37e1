//! Control groups: one per attempt, whose limits hold for all processes of the attempt together.
//!
//! They exist where this process may divide a group of version 2: its own, as under systemd with `Delegate=yes`, or, as root,
//! that of the whole machine. Below that group, each worker has a folder `ebb.PID.N` which it keeps locked, so that the next
//! worker recognizes the folders of dead ones. A group that distributes a controller may not contain processes, so a worker
//! that divides its own group moves to a leaf of it first.
//!
//! Invariant: no process that this module did not start is moved or killed, except in groups of dead workers' attempts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::messages::{Excess, Usage};
use crate::plan::Limits;

/// What the folders of workers begin with.
const PREFIX: &str = "ebb.";

/// The group that a worker moves to.
const LEAF: &str = "worker";

/// How many names a worker tries for its folder.
const MAX_NAMES: u32 = 100;

/// The length of the periods in which processor time is limited, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// The resources whose use the system limits for all processes of an attempt together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Controllers {
    /// Whether it limits memory.
    pub memory: bool,
    /// Whether it limits the number of processes and threads.
    pub processes: bool,
    /// Whether it limits processor time.
    pub cpu: bool,
}

impl Controllers {
    const ALL: Self = Self { memory: true, processes: true, cpu: true };

    fn of(list: &str) -> Self {
        let has = |wanted| list.split_whitespace().any(|name| name == wanted);
        Self { memory: has("memory"), processes: has("pids"), cpu: has("cpu") }
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let named = [(self.memory, "memory"), (self.processes, "pids"), (self.cpu, "cpu")];
        named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name)
    }
}

/// The groups of a worker's attempts, where the system lets it create some. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ControlGroups(Option<Arc<Worker>>);

impl ControlGroups {
    /// Takes possession of a folder for this worker, and removes those of dead ones. This may move this process to another
    /// group, so call it once, before other processes are started.
    pub fn open() -> Self {
        let mut best: Option<Worker> = None;
        for place in places() {
            let Ok(found) = Worker::open(&place) else { continue };
            let is_complete = found.controllers == Controllers::ALL;
            let count = |worker: &Worker| worker.controllers.names().count();
            if best.as_ref().is_none_or(|best| count(best) < count(&found)) {
                best = Some(found);
            }
            if is_complete {
                break;
            }
        }
        Self(best.map(Arc::new))
    }

    /// What the groups of attempts limit.
    pub fn controllers(&self) -> Controllers {
        self.0.as_ref().map(|worker| worker.controllers).unwrap_or_default()
    }

    /// A new group with these limits; none where there can be none.
    pub fn create(&self, limits: &Limits) -> io::Result<Option<ControlGroup>> {
        self.0.as_ref().map(|worker| ControlGroup::create(worker.clone(), limits)).transpose()
    }
}

/// The folder of a worker.
#[derive(Debug)]
struct Worker {
    folder: PathBuf,
    controllers: Controllers,
    created: AtomicU64,
    /// Groups of attempts that ended, whose last processes were not gone yet.
    ended: Mutex<Vec<PathBuf>>,
    _lock: File,
}

impl Worker {
    fn open(place: &Path) -> io::Result<Self> {
        remove_stale(place);
        let (folder, lock) = claim(place)?;
        let wanted = Controllers::of(&read(place, "cgroup.controllers"));
        if distribute(place, wanted).is_err_and(|error| error.kind() == ErrorKind::ResourceBusy) {
            // This process is in the group, perhaps not alone.
            let moved = enter_leaf(&folder).and_then(|()| distribute(place, wanted));
            if moved.is_err_and(|error| error.kind() == ErrorKind::ResourceBusy) {
                let _ = join(place);
                let _ = fs::remove_dir(folder.join(LEAF));
            }
        }
        let _ = distribute(&folder, Controllers::of(&read(&folder, "cgroup.controllers")));
        let controllers = Controllers::of(&read(&folder, "cgroup.subtree_control"));
        Ok(Self { folder, controllers, created: AtomicU64::default(), ended: Mutex::default(), _lock: lock })
    }

    fn remove_ended(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|folder| fs::remove_dir(folder).is_err_and(|error| error.kind() != ErrorKind::NotFound));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.remove_ended();
        // What is left, the next worker removes.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The group of an attempt. Dropping it kills what is left in it.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
    worker: Arc<Worker>,
}

impl ControlGroup {
    fn create(worker: Arc<Worker>, limits: &Limits) -> io::Result<Self> {
        worker.remove_ended();
        let folder = worker.folder.join(worker.created.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder)?;
        let Controllers { memory, processes, cpu } = worker.controllers;
        let group = Self { folder, worker };
        if memory {
            // The attempt ends as a whole, whichever of its processes exceeds the memory.
            group.set("memory.oom.group", 1)?;
        }
        if let Some(bytes) = limits.memory.filter(|_| memory) {
            group.set("memory.max", bytes)?;
            // Not there without swap.
            let _ = group.set("memory.swap.max", 0);
        }
        if let Some(number) = limits.processes.filter(|_| processes) {
            group.set("pids.max", number)?;
        }
        if let Some(cpus) = limits.cpus.filter(|_| cpu) {
            write(&group.folder, "cpu.max", &format!("{} {CPU_PERIOD}", u64::from(cpus) * CPU_PERIOD))?;
        }
        Ok(group)
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        write(&self.folder, file, &value.to_string())
    }

    /// Its folder, for the plan of the attempt.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        kill(&self.folder);
        if fs::remove_dir(&self.folder).is_err() {
            let mut ended = self.worker.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(std::mem::take(&mut self.folder));
        }
    }
}

/// Moves this process to a group.
pub(crate) fn join(group: &Path) -> io::Result<()> {
    write(group, "cgroup.procs", "0")
}

/// Kills all processes of a group. Returns whether the system can.
pub(crate) fn kill(group: &Path) -> bool {
    write(group, "cgroup.kill", "1").is_ok()
}

/// Whether the group limits the number of its processes.
pub(crate) fn counts_processes(group: &Path) -> bool {
    group.join("pids.max").exists()
}

/// What all processes of a group used together, where the system says it.
pub(crate) fn used(group: &Path, otherwise: Usage) -> Usage {
    let peak = read(group, "memory.peak").trim().parse();
    Usage {
        cpu_seconds: value(group, "cpu.stat", "usage_usec")
            .map_or(otherwise.cpu_seconds, |micros| micros as f64 / 1e6),
        peak_memory_bytes: peak.unwrap_or(otherwise.peak_memory_bytes),
    }
}

/// Why the system killed the group, if it did.
pub(crate) fn excess(group: &Path) -> Option<Excess> {
    let happened = |event| value(group, "memory.events", event).is_some_and(|times| times > 0);
    match (happened("oom_kill"), happened("oom")) {
        (true, true) => Some(Excess::Memory),
        (true, false) => Some(Excess::MachineMemory),
        (false, _) => None,
    }
}

/// The groups that this process may be able to divide, best first: its own, and as root that of the whole machine.
fn places() -> Vec<PathBuf> {
    let text = |file| fs::read_to_string(file).unwrap_or_default();
    let (mounts, groups) = (text("/proc/self/mountinfo"), text("/proc/self/cgroup"));
    let Some((mount, own)) = locate(&mounts, &groups) else { return Vec::new() };
    let is_divisible = rustix::process::geteuid().is_root() && mount != own;
    [own].into_iter().chain(is_divisible.then_some(mount)).collect()
}

/// Where the hierarchy of version 2 is mounted, and the folder of this process's group in it.
fn locate(mounts: &str, groups: &str) -> Option<(PathBuf, PathBuf)> {
    let path = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, Path::new(fields.next()?));
        let below = kind.starts_with("cgroup2 ").then(|| path.strip_prefix(root).ok())??;
        // A group outside of what this process sees begins with `..`.
        below.components().all(|part| matches!(part, std::path::Component::Normal(_))).then(|| {
            let own = if below.as_os_str().is_empty() { point.to_owned() } else { point.join(below) };
            (point.to_owned(), own)
        })
    })
}

/// Creates a folder and locks it. A worker that removes stale folders may come in between.
fn claim(place: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0..MAX_NAMES {
        let folder = place.join(format!("{PREFIX}{}.{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            created => created?,
        }
        let Some(lock) = lock(&folder) else { continue };
        let is_same = fs::metadata(&folder).is_ok_and(|found| {
            lock.metadata().is_ok_and(|locked| (locked.dev(), locked.ino()) == (found.dev(), found.ino()))
        });
        if is_same {
            return Ok((folder, lock));
        }
    }
    Err(io::Error::other("no free name for a control group"))
}

/// The lock of a folder, which the system releases when its holder dies; none if another process holds it.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Removes the folders of dead workers, with what is left of their attempts.
fn remove_stale(place: &Path) {
    for folder in folders(place).filter(|folder| name(folder).starts_with(PREFIX)) {
        let Some(_lock) = lock(&folder) else { continue };
        for group in folders(&folder) {
            if name(&group) != LEAF {
                kill(&group);
            }
            let _ = fs::remove_dir(group);
        }
        let _ = fs::remove_dir(folder);
    }
}

fn folders(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn enter_leaf(folder: &Path) -> io::Result<()> {
    let leaf = folder.join(LEAF);
    fs::create_dir(&leaf)?;
    join(&leaf)
}

/// Lets a group limit what those below it use. A controller that the system refuses is left out, unless all are refused
/// because the group contains processes.
fn distribute(group: &Path, controllers: Controllers) -> io::Result<()> {
    for name in controllers.names() {
        match write(group, "cgroup.subtree_control", &format!("+{name}")) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn read(group: &Path, file: &str) -> String {
    fs::read_to_string(group.join(file)).unwrap_or_default()
}

/// The value of a key in a file of lines with a key and a value each.
fn value(group: &Path, file: &str, key: &str) -> Option<u64> {
    let text = read(group, file);
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Writes a file of a group. Those that the system does not have cannot be created.
fn write(group: &Path, file: &str, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).open(group.join(file))?;
    opened.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
29 23 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_group_of_this_process_is_found_where_it_is_mounted() {
        let found = |groups| locate(MOUNTS, groups);
        let root = PathBuf::from("/sys/fs/cgroup");
        assert_eq!(found("4:memory:/a\n0::/\n"), Some((root.clone(), root.clone())));
        assert_eq!(found("0::/system.slice/ebb.service\n").unwrap().1, root.join("system.slice/ebb.service"));
        assert_eq!(found("0::/../other\n"), None, "it is outside of this namespace");
        assert_eq!(found("4:memory:/a\n"), None);
        let part = "30 23 0:27 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(locate(part, "0::/pod/worker\n").unwrap().1, root.join("worker"));
        assert_eq!(locate(part, "0::/elsewhere\n"), None);
    }

    /// As the system shows a group.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        folder
    }

    #[test]
    fn the_limit_of_an_attempt_differs_from_that_of_its_machine() {
        let killed_by = |events| excess(group(&[("memory.events", events)]).path());
        assert_eq!(killed_by("low 0\nmax 7\noom 0\noom_kill 0\noom_group_kill 0\n"), None);
        assert_eq!(killed_by("oom 1\noom_kill 4\n"), Some(Excess::Memory));
        assert_eq!(killed_by("oom 0\noom_kill 4\n"), Some(Excess::MachineMemory));
        assert_eq!(killed_by(""), None);
    }

    #[test]
    fn usage_that_a_group_does_not_count_is_the_supervisors() {
        let otherwise = Usage { cpu_seconds: 1.0, peak_memory_bytes: 7 };
        let counted = group(&[("cpu.stat", "usage_usec 2500000\nuser_usec 1\n"), ("memory.peak", "4096\n")]);
        assert_eq!(used(counted.path(), otherwise), Usage { cpu_seconds: 2.5, peak_memory_bytes: 4096 });
        assert_eq!(used(group(&[]).path(), otherwise), otherwise);
    }

    #[test]
    fn folders_of_dead_workers_are_removed_and_those_of_living_ones_stay() {
        let place = tempfile::tempdir().unwrap();
        let stale = place.path().join("ebb.1.0");
        fs::create_dir_all(stale.join("7")).unwrap();
        fs::create_dir(place.path().join("other.slice")).unwrap();
        let (one, other) = (Worker::open(place.path()).unwrap(), Worker::open(place.path()).unwrap());
        assert!(!stale.exists() && place.path().join("other.slice").exists());
        assert!(one.folder.exists() && other.folder.exists() && one.folder != other.folder);
        let folder = one.folder.clone();
        drop(one);
        assert!(!folder.exists() && other.folder.exists());
    }
}
