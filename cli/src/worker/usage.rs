//! How much of its machine is in use, as far as the worker can see: of its container, where that has limits of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use api::execution::UsageView;
use rustix::fs::statvfs;

/// Measures how much of a worker's machine is in use.
pub(super) type Meter = Box<dyn Fn() -> UsageView + Send + Sync>;

/// Measures this machine, and the disk below a folder.
pub(super) fn of_machine(folder: PathBuf) -> Meter {
    let meter = UsageMeter::default();
    Box::new(move || meter.measure(&folder))
}

/// Measures the usage of processors since the last time, of memory, and of the disk below a folder.
#[derive(Default)]
struct UsageMeter {
    processors: Mutex<Option<Ticks>>,
}

/// Ticks of all processors since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl UsageMeter {
    /// The usage now, as far as the system shows it.
    fn measure(&self, folder: &Path) -> UsageView {
        UsageView { cpu: self.cpu(), memory: memory(), disk: disk(folder) }
    }

    fn cpu(&self) -> Option<f64> {
        let now = Ticks::read(&fs::read_to_string("/proc/stat").ok()?)?;
        let last = self.processors.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        Some(last.map_or(0.0, |last| now.busy_since(last)))
    }
}

impl Ticks {
    /// Reads the first line of /proc/stat: user, nice, system, idle, waiting for I/O, …
    fn read(stat: &str) -> Option<Self> {
        let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // The last two, guests, are part of the first two.
        let numbers: Vec<u64> = numbers.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { idle: numbers.get(3)? + numbers.get(4)?, all: numbers.iter().sum() })
    }

    fn busy_since(self, last: Self) -> f64 {
        let all = self.all.saturating_sub(last.all);
        let idle = self.idle.saturating_sub(last.idle);
        if all == 0 { 0.0 } else { 1.0 - ratio(idle, all) }
    }
}

/// The larger of the machine's and the container's usage of memory.
fn memory() -> Option<f64> {
    let machine = memory_of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(machine.max(memory_of_container(Path::new("/sys/fs/cgroup")).unwrap_or_default()))
}

fn memory_of_machine(meminfo: &str) -> Option<f64> {
    let field = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(1.0 - ratio(field("MemAvailable:")?, field("MemTotal:")?))
}

/// None without a limit. Memory that only caches files counts as free.
fn memory_of_container(group: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    let stat = read("memory.stat")?;
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file "))?.trim().parse().ok()?;
    Some(ratio(used.saturating_sub(cached), limit))
}

fn disk(folder: &Path) -> Option<f64> {
    let found = statvfs(folder).ok()?;
    // Of what this user could use: some blocks are reserved for root.
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    Some(ratio(used, used + found.f_bavail))
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_ticks_are_all_but_idle_and_waiting_ones() {
        let first = Ticks::read("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(first, Ticks { idle: 800, all: 1000 });
        let later = Ticks { idle: 825, all: 1100 };
        assert_eq!(later.busy_since(first), 0.75);
        assert_eq!(first.busy_since(first), 0.0);
        assert!(Ticks::read("intr 1 2 3").is_none());
    }

    #[test]
    fn memory_is_what_is_not_available() {
        let meminfo = "MemTotal:        1000 kB\nMemFree:  10 kB\nMemAvailable:     250 kB\n";
        assert_eq!(memory_of_machine(meminfo), Some(0.75));
    }

    #[test]
    fn a_container_has_limits_of_its_own_and_its_file_cache_is_free() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        write("memory.current", "900\n");
        write("memory.stat", "anon 300\ninactive_file 400\n");
        write("memory.max", "max\n");
        assert_eq!(memory_of_container(group.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(memory_of_container(group.path()), Some(0.5));
    }

    #[test]
    fn this_machine_shows_its_usage() {
        let UsageView { cpu, memory, disk } = of_machine(std::env::temp_dir())();
        let parts = [cpu.unwrap(), memory.unwrap(), disk.unwrap()];
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{parts:?}");
    }
}
