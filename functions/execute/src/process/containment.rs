//! How a worker keeps the programs of its tasks apart from itself and from each other.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use ::containment::{Limits, Network, Plan, TaskUser, TaskUsers, supervisor_arguments};
use model::{Failure, NetworkAccess};
use tokio::process::Command;

use super::{Program, Scratch};
use crate::job::Job;

/// The number of processes and threads that a program may have, if its task says nothing.
const DEFAULT_PROCESSES: u64 = 1_024;

/// What an installation keeps beside the folder of its programs, such as `lib` beside `bin`.
const BESIDE_PROGRAMS: [&str; 7] = ["lib", "lib64", "libexec", "include", "share/uv", "versions", "envs"];

/// Starts programs under supervisors. Clones share the users that it gives to programs.
#[derive(Clone, Debug, Default)]
pub struct Containment {
    users: TaskUsers,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Containment {
    /// Programs may read and change these folders, besides their own and the system's.
    pub fn new(readable: Vec<PathBuf>, writable: Vec<PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&path).flat_map(|folder| installation(&folder));
        Self { users: TaskUsers::default(), readable: installed.chain(readable).collect(), writable }
    }

    /// A command that starts the program under a supervisor, and the user that it runs as.
    pub(super) fn command(
        &self,
        program: &Program,
        scratch: &Scratch,
        job: &Job,
    ) -> Result<(Command, Option<TaskUser>), Failure> {
        let user = self.users.acquire();
        if let Some(user) = &user {
            scratch.give_to(user.id())?;
        }
        let plan = self.plan(program, scratch, job, user.as_ref());
        let mut command = Command::new(this_executable());
        command.args(supervisor_arguments(&plan, program.name)).args(&program.arguments);
        Ok((command, user))
    }

    fn plan(&self, program: &Program, scratch: &Scratch, job: &Job, user: Option<&TaskUser>) -> Plan {
        let script = program.script.iter().filter_map(|script| script.parent()).map(Path::to_owned);
        Plan {
            user: user.map(TaskUser::id),
            writable: self.writable.iter().cloned().chain([scratch.folder().to_owned()]).collect(),
            readable: self.readable.iter().cloned().chain(script).collect(),
            limits: Limits {
                cpus: job.resources.cpu,
                memory: job.resources.memory,
                file_size: job.resources.disk,
                processes: Some(job.resources.processes.map_or(DEFAULT_PROCESSES, u64::from)),
            },
            network: match job.network {
                NetworkAccess::Shared => Network::Shared,
                NetworkAccess::None => Network::None,
            },
        }
    }
}

/// This executable, even if a newer one has replaced its file.
fn this_executable() -> OsString {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().map_or_else(|_| "ebb".into(), PathBuf::into_os_string)
}

/// A folder of programs and what is installed beside it.
fn installation(programs: &Path) -> Vec<PathBuf> {
    let beside = programs.parent().map(|parent| BESIDE_PROGRAMS.map(|name| parent.join(name)));
    beside.into_iter().flatten().chain([programs.to_owned()]).filter(|folder| folder.is_dir()).collect()
}

/// Whether any user can read the file: the programs of tasks run as users of their own where the worker is root.
pub(super) fn is_readable_by_all(file: &Path) -> bool {
    let permits = |path: &Path, bits: u32| fs::metadata(path).is_ok_and(|found| found.mode() & bits == bits);
    permits(file, 0o004) && file.ancestors().skip(1).all(|folder| permits(folder, 0o001))
}

impl Scratch {
    /// Lets a user work in the folder.
    fn give_to(&self, user: u32) -> Result<(), Failure> {
        let give = |path: &Path| chown(path, Some(user), Some(user));
        let given = give(self.folder()).and_then(|()| give(&self.work()));
        given.map_err(|error| {
            Failure::transient(format!("cannot give the scratch folder to its program: {error}"))
        })
    }
}
