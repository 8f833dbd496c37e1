//! How a worker keeps the programs of its tasks apart from itself and from each other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use ::containment::{Limits, Network, Plan, Request, Supervisors, TaskUser, TaskUsers};
use model::{Failure, NetworkAccess};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{Program, Scratch};
use crate::job::Job;

/// The number of processes and threads that a program may have, if its task says nothing.
const DEFAULT_PROCESSES: u64 = 1_024;

/// What an installation keeps beside the folder of its programs, such as `lib` beside `bin`.
const BESIDE_PROGRAMS: [&str; 7] = ["lib", "lib64", "libexec", "include", "share/uv", "versions", "envs"];

/// Starts programs under supervisors. Clones share the users that it gives to programs, and what forks supervisors.
#[derive(Clone, Debug, Default)]
pub struct Containment {
    supervisors: Supervisors,
    users: TaskUsers,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Containment {
    /// Programs may read and change these folders, besides their own and the system's.
    pub fn new(readable: Vec<PathBuf>, writable: Vec<PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&path).flat_map(|folder| installation(&folder));
        Self { readable: installed.chain(readable).collect(), writable, ..Self::default() }
    }

    /// A supervisor that waits for its request.
    pub(super) fn start(&self) -> io::Result<Supervised> {
        let ((output, program_output), (errors, program_errors)) = (io::pipe()?, io::pipe()?);
        let socket = self.supervisors.start(program_output.into(), program_errors.into())?;
        socket.set_nonblocking(true)?;
        Ok(Supervised {
            socket: UnixStream::from_std(socket)?,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            errors: pipe::Receiver::from_owned_fd(errors.into())?,
        })
    }

    /// What a supervisor is asked to start, and the user that it runs as.
    pub(super) fn request(
        &self,
        program: &Program,
        environment: BTreeMap<OsString, OsString>,
        scratch: &Scratch,
        job: &Job,
    ) -> Result<(Request, Option<TaskUser>), Failure> {
        let user = self.users.acquire();
        if let Some(user) = &user {
            scratch.give_to(user.id())?;
            program.writable.iter().try_for_each(|folder| give(folder, user.id()))?;
        }
        let request = Request {
            plan: self.plan(program, scratch, job, user.as_ref()),
            folder: scratch.work(),
            program: program.name.clone().into(),
            arguments: program.arguments.clone(),
            environment,
        };
        Ok((request, user))
    }

    fn plan(&self, program: &Program, scratch: &Scratch, job: &Job, user: Option<&TaskUser>) -> Plan {
        let script = program.script.iter().filter_map(|script| script.parent()).map(Path::to_owned);
        Plan {
            user: user.map(TaskUser::id),
            writable: self
                .writable
                .iter()
                .chain(&program.writable)
                .cloned()
                .chain([scratch.folder().to_owned()])
                .collect(),
            readable: self.readable.iter().chain(&program.readable).cloned().chain(script).collect(),
            limits: Limits {
                cpus: job.resources.cpu,
                memory: job.resources.memory,
                file_size: job.resources.disk,
                // Without a user of its own, a program meets the limit in a user namespace, where the files of other users
                // have no owner that it knows: only if its task asks for that.
                processes: job.resources.processes.map(u64::from).or(user.map(|_| DEFAULT_PROCESSES)),
            },
            network: match job.network {
                NetworkAccess::Shared => Network::Shared,
                NetworkAccess::None => Network::None,
            },
        }
    }
}

/// A supervisor, and the ends of the pipes that its program writes to.
pub(super) struct Supervised {
    pub(super) socket: UnixStream,
    pub(super) output: pipe::Receiver,
    pub(super) errors: pipe::Receiver,
}

/// A folder of programs and what is installed beside it.
fn installation(programs: &Path) -> Vec<PathBuf> {
    let beside = programs.parent().map(|parent| BESIDE_PROGRAMS.map(|name| parent.join(name)));
    beside.into_iter().flatten().chain([programs.to_owned()]).filter(|folder| folder.is_dir()).collect()
}

/// Whether any user can read the file: the programs of tasks run as users of their own where the worker is root.
pub(crate) fn is_readable_by_all(file: &Path) -> bool {
    let permits = |path: &Path, bits: u32| fs::metadata(path).is_ok_and(|found| found.mode() & bits == bits);
    permits(file, 0o004) && file.ancestors().skip(1).all(|folder| permits(folder, 0o001))
}

impl Scratch {
    /// Lets a user work in the folder.
    fn give_to(&self, user: u32) -> Result<(), Failure> {
        give(self.folder(), user)?;
        give(&self.work(), user)
    }
}

/// Lets a user work in a folder.
fn give(folder: &Path, user: u32) -> Result<(), Failure> {
    chown(folder, Some(user), Some(user))
        .map_err(|error| Failure::transient(format!("cannot give a folder to its program: {error}")))
}
