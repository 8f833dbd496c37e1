//! Environments with the packages that Python programs need, built once and kept.
//!
//! Invariants: an environment that is not complete is never used; one that is complete never changes; tenants share none, since
//! installing a package runs its code. That code is contained like a task's program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use language::config::PythonEnvironment;
use model::{Failure, NetworkAccess};
use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex as AsyncMutex;

use super::{Program, Scratch, environment};
use crate::job::{Context, Job};
use crate::log::{Level, Stream};
use crate::task_runners::Unfinished;

/// Environments that were not used for this long are removed.
const UNUSED_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Makes a virtual environment with uv: its folder, the requirements and the version of Python.
const WITH_UV: &str = r#"set -eu
export UV_PYTHON_INSTALL_DIR="$1/.python" UV_CACHE_DIR="$PWD/.uv" UV_LINK_MODE=copy
uv venv --quiet --no-project --python "$3" "$1"
if [ -s "$2" ]; then uv pip install --quiet --python "$1/bin/python" --requirement "$2"; fi"#;

/// The same with the module `venv` of Python, and pip.
const WITH_PIP: &str = r#"set -eu
"$3" -m venv "$1"
if [ -s "$2" ]; then
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --requirement "$2"
fi"#;

/// The builds of this process, by environment: attempts that need the same one wait for each other.
static BUILDS: Mutex<BTreeMap<PathBuf, Arc<AsyncMutex<()>>>> = Mutex::new(BTreeMap::new());

/// The folder of environments, if none is configured. Task programs must be able to read it.
pub(crate) fn default_folder() -> PathBuf {
    std::env::temp_dir().join(format!("ebb-environments-{}", rustix::process::geteuid().as_raw()))
}

/// The environment of these packages, built if there is none. `listed` is the content of the requirements file.
pub(crate) async fn prepare(
    wanted: &PythonEnvironment,
    listed: Option<String>,
    job: &Job,
    context: &Context,
) -> Result<PathBuf, Unfinished> {
    let builder = Builder::choose(wanted.version.as_deref())?;
    let mut requirements = wanted.requirements.join("\n");
    requirements.extend(["\n".to_owned(), listed.unwrap_or_default()]);
    let folder = context.environments.join(key(job, &builder, &requirements));
    // First: what is in a folder of somebody else proves nothing.
    create_base(&context.environments)?;
    if is_complete(&folder, context) {
        return Ok(folder);
    }
    let build = builds(&folder);
    let _turn = context.cancel.run_until_cancelled(build.lock()).await.ok_or(Unfinished::Stopped)?;
    let lock = context.cancel.run_until_cancelled(lock(&folder)).await.ok_or(Unfinished::Stopped)??;
    if !is_complete(&folder, context) {
        let build = Build { folder: &folder, lock: Arc::new(lock), builder: &builder, job, context };
        build.run(requirements.trim()).await?;
    }
    Ok(folder)
}

/// Whether an environment can be used. Marks it as used.
fn is_complete(folder: &Path, context: &Context) -> bool {
    // Beside the folder and not in it, where the code of packages could write it.
    let Ok(marker) = File::options().append(true).open(folder.with_extension("complete")) else {
        return false;
    };
    let _ = marker.set_modified(context.clock.now().into());
    folder.join("bin/python").exists()
}

fn key(job: &Job, builder: &Builder, requirements: &str) -> String {
    let Builder { name, python, stamp, .. } = builder;
    // With its name: a worker that leases attempts from a server does not know the tenant's id.
    let tenant = format!("{} {}", job.tenant.0, job.document["tenant"]);
    let parts: [&str; 5] = [&tenant, name, python, stamp, requirements];
    let digest = Sha256::digest(parts.join("\0"));
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What builds an environment.
struct Builder {
    name: &'static str,
    script: &'static str,
    /// The interpreter that the environment is based on.
    python: String,
    /// Which build of the interpreter or of uv it is: after an upgrade, environments are built again.
    stamp: String,
}

impl Builder {
    fn choose(version: Option<&str>) -> Result<Self, Failure> {
        let python = version.map_or_else(|| "python3".to_owned(), |version| format!("python{version}"));
        let found = find(&python);
        if let Some(uv) = find("uv") {
            let python = version.map_or(python, str::to_owned);
            let stamp = stamp(found.as_deref().unwrap_or(&uv));
            return Ok(Self { name: "uv", script: WITH_UV, python, stamp });
        }
        let found = found.ok_or_else(|| {
            Failure::permanent(format!(
                "this worker has neither `uv` nor `{python}` on its PATH: install one of them there, or use a queue whose \
                 workers have it"
            ))
        })?;
        Ok(Self { name: "pip", script: WITH_PIP, stamp: stamp(&found), python })
    }
}

fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&environment::search_path())
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn stamp(program: &Path) -> String {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let changed = fs::metadata(&real).map(|found| found.mtime()).unwrap_or_default();
    format!("{} {changed}", real.display())
}

fn builds(folder: &Path) -> Arc<AsyncMutex<()>> {
    let mut builds = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    builds.retain(|_, build| Arc::strong_count(build) > 1);
    builds.entry(folder.to_owned()).or_default().clone()
}

/// Waits for other processes of this worker's user that build the same environment.
async fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.with_extension("lock");
    let lock = move || -> io::Result<File> {
        let file = File::create(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    let locked = tokio::task::spawn_blocking(lock).await.map_err(io::Error::other).flatten();
    locked.map_err(|error| unusable(folder, &error))
}

/// Creates the folder of environments, which nobody else may write to.
fn create_base(base: &Path) -> Result<(), Failure> {
    match fs::DirBuilder::new().mode(0o755).create(base) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => created.map_err(|error| unusable(base, &error))?,
    }
    let found = fs::symlink_metadata(base).map_err(|error| unusable(base, &error))?;
    let is_own =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if !is_own {
        let base = base.display();
        return Err(Failure::permanent(format!(
            "the folder {base} for Python environments belongs to another user, or others may write to it: remove it"
        )));
    }
    Ok(())
}

/// One build of an environment.
struct Build<'b> {
    folder: &'b Path,
    lock: Arc<File>,
    builder: &'b Builder,
    job: &'b Job,
    context: &'b Context,
}

impl Build<'_> {
    async fn run(&self, requirements: &str) -> Result<(), Unfinished> {
        let Self { folder, builder, context, .. } = self;
        let notice = format!(
            "building the environment of this task with {}; later attempts use it again",
            builder.name
        );
        context.log.line(Stream::System, Level::Info, &notice).await;
        let built = self.build(requirements).await;
        if built.is_err() {
            // What cannot be removed does no harm: it is not marked as complete, and the next build starts over.
            let folder = folder.to_path_buf();
            let _ = self.blocking(move || remove(&folder)).await;
        }
        built
    }

    async fn build(&self, requirements: &str) -> Result<(), Unfinished> {
        let Self { folder, builder, .. } = self;
        self.start_over().await.map_err(|error| unusable(folder, &error))?;
        match self.install(requirements).await {
            Ok(()) => {}
            Err(Unfinished::Failed(failure)) => {
                let message =
                    format!("cannot build its environment with {}: {}", builder.name, failure.message);
                return Err(Failure { message, exit_code: None, ..failure }.into());
            }
            Err(stopped) => return Err(stopped),
        }
        self.complete().await.map_err(|error| unusable(folder, &error))?;
        Ok(())
    }

    /// Walks through folders in a blocking thread: they may contain many files. The lock is held until that is done, even if
    /// the attempt is gone before.
    async fn blocking(&self, walk: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
        let lock = self.lock.clone();
        let walk = move || {
            let done = walk();
            drop(lock);
            done
        };
        tokio::task::spawn_blocking(walk).await.map_err(io::Error::other).flatten()
    }

    /// Removes what an interrupted build left behind, and environments that nobody uses.
    async fn start_over(&self) -> io::Result<()> {
        let folder = self.folder.to_path_buf();
        let unused_since = SystemTime::from(self.context.clock.now() - UNUSED_TTL);
        let start_over = move || -> io::Result<()> {
            sweep(folder.parent().unwrap_or(&folder), unused_since)?;
            // Nobody begins to use what is built here.
            let _ = fs::remove_file(folder.with_extension("complete"));
            remove(&folder)?;
            fs::DirBuilder::new().mode(0o755).create(&folder)
        };
        self.blocking(start_over).await
    }

    /// Runs the builder like the program of a task, which may write to the environment's folder.
    async fn install(&self, requirements: &str) -> Result<(), Unfinished> {
        // Packages come over the network, even for a program whose task may not use it; so their code does not get the run's data.
        if self.context.containment.as_ref().is_some_and(|containment| !containment.allows_network()) {
            return Err(Failure::permanent(
                "cannot install packages: this worker gives programs no network (EBB_TASK_NETWORK=none). Use a worker whose \
                 image has them, or a queue whose workers allow it",
            )
            .into());
        }
        let (network, document) = (Some(NetworkAccess::Shared), serde_json::json!({}));
        let job = Job { network, document, ..self.job.clone() };
        let scratch = Scratch::prepare(&job, self.context).await?;
        let list = scratch.write("requirements.txt", requirements).await?;
        let arguments: [OsString; 6] = [
            "-c".into(),
            self.builder.script.into(),
            "bash".into(),
            self.folder.into(),
            list.into(),
            self.builder.python.as_str().into(),
        ];
        let program = Program {
            arguments: arguments.into(),
            environment: environment::of_installers(),
            writable: vec![self.folder.to_owned()],
            ..Program::new("bash", "install bash there, or use a queue whose workers have it")
        };
        super::run(program, scratch, &job, self.context).await.map(drop)
    }

    /// Makes the environment the worker's own, and marks it as complete.
    async fn complete(&self) -> io::Result<()> {
        if self.context.containment.is_some() && rustix::process::geteuid().is_root() {
            let folder = self.folder.to_path_buf();
            self.blocking(move || take_over(&folder)).await?;
        }
        File::create(self.folder.with_extension("complete")).map(drop)
    }
}

/// Removes environments that nobody has used since then.
fn sweep(base: &Path, unused_since: SystemTime) -> io::Result<()> {
    for marker in fs::read_dir(base)?.flatten().map(|entry| entry.path()) {
        let is_marker = marker.extension().is_some_and(|extension| extension == "complete");
        let is_old = || Ok::<_, io::Error>(fs::metadata(&marker)?.modified()? < unused_since);
        // The marker first: then nobody begins to use it. If it is gone, another build is removing the environment.
        if is_marker && is_old().unwrap_or(false) && fs::remove_file(&marker).is_ok() {
            let _ = fs::remove_dir_all(marker.with_extension(""));
        }
    }
    Ok(())
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes this process's user the owner of a folder and all that is in it. Links are not followed.
fn take_over(path: &Path) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    lchown(path, Some(user), Some(group))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            take_over(&entry?.path())?;
        }
    }
    Ok(())
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::transient(format!("cannot keep a Python environment at {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
