//! Restrictions that the calling thread takes on, and keeps when it executes a program.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::groups;
use crate::plan::{Limits, Network, Plan};

/// What this system can enforce on programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enforced {
    /// Whether programs run as users of their own.
    pub users: bool,
    /// Whether programs see only the folders of their plan.
    pub files: bool,
}

/// Finds out what this system can enforce, in a thread of its own.
pub fn probe() -> Enforced {
    let files = std::thread::spawn(|| system::confine(&Plan::default()).unwrap_or(false)).join();
    Enforced { users: rustix::process::geteuid().is_root(), files: files.unwrap_or(false) }
}

/// Restricts this process, which must have a single thread, and what it starts.
pub(crate) fn restrict(plan: &Plan) -> io::Result<()> {
    let is_counted_apart = enter(plan)?;
    apply(&plan.limits, is_counted_apart || plan.user.is_some())?;
    system::confine(plan)?;
    Ok(())
}

/// Moves this process to the control group and the namespaces of the plan. Returns whether the system then counts the
/// processes of its user apart.
fn enter(plan: &Plan) -> io::Result<bool> {
    let group = plan.group.as_deref();
    if let Some(group) = group {
        let refused = |error| io::Error::other(format!("cannot enter its control group: {error}"));
        groups::join(group).map_err(refused)?;
    }
    let is_uncounted = plan.user.is_none() && !group.is_some_and(groups::counts_processes);
    match plan.network {
        Network::Shared if is_uncounted && plan.limits.processes.is_some() => {
            // Not every system lets its users do that; the documentation says so.
            Ok(system::count_apart().is_ok())
        }
        Network::Shared => Ok(false),
        Network::None => system::leave_network().map_err(|error| {
            io::Error::other(format!(
                "this worker cannot run a task without network (`network: none`): {error}"
            ))
        }),
    }
}

fn apply(limits: &Limits, is_counted_apart: bool) -> io::Result<()> {
    at_most(Resource::Core, 0)?;
    if let Some(memory) = limits.memory {
        at_most(Resource::Data, memory)?;
    }
    if let Some(size) = limits.disk {
        at_most(Resource::Fsize, size)?;
    }
    // The system counts the processes of a user, in each user namespace: those of the worker's own would count, too.
    if let Some(processes) = limits.processes.filter(|_| is_counted_apart) {
        at_most(Resource::Nproc, processes)?;
    }
    if let Some(cpus) = limits.cpus {
        system::use_cpus(cpus)?;
    }
    Ok(())
}

/// Lowers a limit; one that is lower already stays.
fn at_most(resource: Resource, maximum: u64) -> io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let limit = Some(hard.map_or(maximum, |hard| hard.min(maximum)));
    Ok(setrlimit(resource, Rlimit { current: limit, maximum: limit })?)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io};

    use landlock::{
        ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetStatus, Scope, path_beneath_rules,
    };
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    use rustix::thread::{CpuSet, UnshareFlags, sched_getaffinity, sched_setaffinity};

    use crate::plan::Plan;

    /// The newest interface whose restrictions are used; older systems enforce what they know.
    const ABI: ABI = ABI::V6;

    /// The read-only system: programs, libraries, configuration, and the kernel's own files.
    const SYSTEM: [&str; 15] = [
        "/bin",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/nix",
        "/opt",
        "/proc",
        "/run/resolvconf",
        "/run/systemd/resolve",
        "/sbin",
        "/snap",
        "/sys",
        "/usr",
    ];

    /// Devices that every program expects to read and write.
    const DEVICES: [&str; 8] = [
        "/dev/fd",
        "/dev/full",
        "/dev/null",
        "/dev/random",
        "/dev/shm",
        "/dev/tty",
        "/dev/urandom",
        "/dev/zero",
    ];

    /// Confines the calling thread to the plan's files. Returns whether the system enforces it.
    pub(super) fn confine(plan: &Plan) -> io::Result<bool> {
        let refused = |error| io::Error::other(format!("cannot confine the program to its files: {error}"));
        let rules = || {
            Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(ABI))?
                .scope(Scope::from_all(ABI))?
                .create()?
                .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(ABI)))?
                .add_rules(path_beneath_rules(&plan.readable, AccessFs::from_read(ABI)))?
                .add_rules(path_beneath_rules(DEVICES, AccessFs::from_all(ABI)))?
                .add_rules(path_beneath_rules(&plan.writable, AccessFs::from_all(ABI)))?
                .add_rules(path_beneath_rules([&plan.scratch], AccessFs::from_all(ABI)))?
                .restrict_self()
        };
        // This also takes on `no_new_privs`, without which an unprivileged thread may not restrict itself.
        rustix::thread::set_no_new_privs(true)?;
        let status = rules().map_err(|error: landlock::RulesetError| refused(error.to_string()))?;
        Ok(status.ruleset != RulesetStatus::NotEnforced)
    }

    /// Leaves the worker's network for an empty one. Users other than root need a user namespace for that. Returns whether
    /// this process is in one.
    pub(super) fn leave_network() -> io::Result<bool> {
        if rustix::process::geteuid().is_root() {
            unshare(UnshareFlags::NEWNET)?;
            return Ok(false);
        }
        enter_user_namespace(UnshareFlags::NEWNET)?;
        Ok(true)
    }

    /// Enters a user namespace, in which the system counts processes separately.
    pub(super) fn count_apart() -> io::Result<()> {
        enter_user_namespace(UnshareFlags::empty())
    }

    /// Enters a user namespace and others, and keeps the name of the user there.
    fn enter_user_namespace(others: UnshareFlags) -> io::Result<()> {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        unshare(UnshareFlags::NEWUSER | others)?;
        // The files of a process that is not dumpable belong to root.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))?;
        Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }

    #[expect(
        unsafe_code,
        reason = "rustix marks it so for the flags that separate file descriptors, which are not used"
    )]
    fn unshare(flags: UnshareFlags) -> io::Result<()> {
        // SAFETY: neither NEWNET nor NEWUSER separates file descriptors.
        Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
    }

    /// Leaves the thread that number of the CPUs that it has, chosen by process so that programs spread out.
    pub(super) fn use_cpus(cpus: u32) -> io::Result<()> {
        let available = sched_getaffinity(None)?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| available.is_set(*cpu)).collect();
        let first = std::process::id() as usize % all.len().max(1);
        let mut chosen = CpuSet::new();
        all.iter()
            .cycle()
            .skip(first)
            .take((cpus as usize).clamp(1, all.len()))
            .for_each(|cpu| chosen.set(*cpu));
        Ok(sched_setaffinity(None, &chosen)?)
    }
}

/// Other systems enforce none of it: `ebb dev` on a laptop runs what its owner wrote.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use crate::plan::Plan;

    pub(super) fn confine(_: &Plan) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn leave_network() -> io::Result<bool> {
        Err(io::Error::other("it needs Linux"))
    }

    pub(super) fn count_apart() -> io::Result<()> {
        Err(io::Error::other("it needs Linux"))
    }

    pub(super) fn use_cpus(_: u32) -> io::Result<()> {
        Ok(())
    }
}
