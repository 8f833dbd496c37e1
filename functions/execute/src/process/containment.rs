//! How a worker keeps the programs of its tasks apart from itself and from each other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use ::containment::{
    ControlGroup, ControlGroups, Limits, Network, Plan, Request, Supervisors, TaskUser, TaskUsers,
};
use model::{Failure, NetworkAccess};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{Program, Scratch};
use crate::job::Job;

/// The number of processes and threads that a program may have, if its task says nothing and the system counts them apart
/// from others of the worker's user.
const DEFAULT_PROCESSES: u64 = 1_024;

/// What an installation keeps beside the folder of its programs, such as `lib` beside `bin`.
const BESIDE_PROGRAMS: [&str; 7] = ["lib", "lib64", "libexec", "include", "share/uv", "versions", "envs"];

/// Starts programs under supervisors. Clones share the users and control groups that it gives to programs, and what forks
/// supervisors.
#[derive(Clone, Debug, Default)]
pub struct Containment {
    supervisors: Supervisors,
    users: TaskUsers,
    groups: ControlGroups,
    network: NetworkAccess,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Containment {
    /// Programs may reach at most this network, may read and change these folders besides their own and the system's, and get
    /// groups of these.
    pub fn new(
        network: NetworkAccess,
        readable: Vec<PathBuf>,
        writable: Vec<PathBuf>,
        groups: ControlGroups,
    ) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&path).flat_map(|folder| installation(&folder));
        Self { readable: installed.chain(readable).collect(), network, writable, groups, ..Self::default() }
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

    /// What a supervisor is asked to start, and what is the program's alone while it runs.
    pub(super) fn request(
        &self,
        program: &Program,
        environment: BTreeMap<OsString, OsString>,
        scratch: &Scratch,
        job: &Job,
    ) -> Result<(Request, Reserved), Failure> {
        let missing = |error| Failure::transient(format!("this worker cannot contain the program: {error}"));
        let network = self.network(job)?;
        let user = self.users.acquire().map_err(missing)?;
        let limits = self.limits(job, user.is_some());
        let group = self.groups.create(&limits).map_err(missing)?;
        if let Some(user) = &user {
            scratch.give_to(user.id())?;
            program.writable.iter().try_for_each(|folder| give(folder, user.id()))?;
        }
        let reserved = Reserved { user, group };
        let request = Request {
            plan: Plan { limits, network, ..self.plan(program, scratch, &reserved) },
            folder: scratch.work(),
            program: program.name.clone().into(),
            arguments: program.arguments.clone(),
            environment,
        };
        Ok((request, reserved))
    }

    /// Whether a program may reach what this worker reaches.
    pub(super) fn allows_network(&self) -> bool {
        self.network == NetworkAccess::Shared
    }

    /// What the operator allows, unless the task is content with less.
    fn network(&self, job: &Job) -> Result<Network, Failure> {
        match (job.network, self.network) {
            (Some(NetworkAccess::Shared), NetworkAccess::None) => Err(Failure::permanent(
                "the task says `network: shared`, but this worker gives programs no network (EBB_TASK_NETWORK=none): use a \
                 queue whose workers allow it, or leave `network` out if the program needs none",
            )),
            (Some(NetworkAccess::None), _) | (None, NetworkAccess::None) => Ok(Network::None),
            (_, NetworkAccess::Shared) => Ok(Network::Shared),
        }
    }

    fn limits(&self, job: &Job, has_user: bool) -> Limits {
        // Without a user or a group of its own, a program meets the limit in a user namespace, where the files of other users
        // have no owner that it knows: only if its task asks for that.
        let is_counted_apart = has_user || self.groups.controllers().processes;
        Limits {
            cpus: job.resources.cpu,
            memory: job.resources.memory,
            disk: job.resources.disk,
            processes: job
                .resources
                .processes
                .map(u64::from)
                .or(is_counted_apart.then_some(DEFAULT_PROCESSES)),
        }
    }

    fn plan(&self, program: &Program, scratch: &Scratch, reserved: &Reserved) -> Plan {
        let script = program.script.iter().filter_map(|script| script.parent()).map(Path::to_owned);
        Plan {
            user: reserved.user_id(),
            group: reserved.group.as_ref().map(|group| group.folder().to_owned()),
            scratch: scratch.folder().to_owned(),
            writable: self.writable.iter().chain(&program.writable).cloned().collect(),
            readable: self.readable.iter().chain(&program.readable).cloned().chain(script).collect(),
            ..Plan::default()
        }
    }
}

/// What is a program's alone while it runs: its user and its control group, where the system has them.
#[derive(Debug)]
pub(super) struct Reserved {
    user: Option<TaskUser>,
    group: Option<ControlGroup>,
}

impl Reserved {
    pub(super) fn user_id(&self) -> Option<u32> {
        self.user.as_ref().map(TaskUser::id)
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
