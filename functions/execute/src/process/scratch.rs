//! The scratch directory of a process: its input file, its output file, its pipe for messages and its working directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::Value;
use tempfile::TempDir;
use tokio::fs;
use tokio::io::AsyncReadExt;

use model::{Failure, ScriptPath};

use super::description;
use crate::job::{Context, Job};
use crate::task_runners::MAX_OUTPUT_BYTES;

/// A new directory that is removed on drop. The working directory is a folder within it, so that a file that the process
/// happens to call `output.json` is not taken for its output.
pub(crate) struct Scratch {
    root: TempDir,
}

impl Scratch {
    /// Creates the directory with the job's document as the input file.
    pub(crate) async fn prepare(job: &Job, context: &Context) -> Result<Self, Failure> {
        let make = || tempfile::Builder::new().prefix("ebb-").tempdir_in(&context.scratch);
        let scratch = Self { root: make().map_err(|error| unusable(&context.scratch, &error))? };
        let work = scratch.work();
        fs::create_dir(&work).await.map_err(|error| unusable(&work, &error))?;
        scratch.write("input.json", job.document.to_string()).await?;
        Ok(scratch)
    }

    /// Writes a file next to the working directory.
    pub(crate) async fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
        let path = self.root.path().join(name);
        fs::write(&path, text).await.map_err(|error| unusable(&path, &error))?;
        Ok(path)
    }

    /// Writes the files that a version brings along, each at its path in the folder of files.
    pub(crate) async fn add_files(&self, files: &BTreeMap<String, String>) -> Result<(), Failure> {
        for (name, text) in files {
            let name = ScriptPath::new(name).map_err(|error| Failure::permanent(error.to_string()))?;
            let path = self.files().join(name.as_path());
            let folder = path.parent().unwrap_or(&path);
            let written = async {
                fs::create_dir_all(folder).await?;
                fs::write(&path, text).await
            };
            written.await.map_err(|error| unusable(&path, &error))?;
        }
        Ok(())
    }

    /// The folder of the files that a version brings along.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.path().join("files")
    }

    /// One of these files, if it is there.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        let path = self.files().join(ScriptPath::new(name).ok()?.as_path());
        path.is_file().then_some(path)
    }

    /// The whole directory, with the input, the output and the folder that the process starts in.
    pub(super) fn folder(&self) -> &Path {
        self.root.path()
    }

    /// The folder that the process starts in.
    pub(super) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(super) fn input_file(&self) -> PathBuf {
        self.root.path().join("input.json")
    }

    pub(super) fn messages_file(&self) -> PathBuf {
        self.root.path().join("messages")
    }

    pub(super) fn output_file(&self) -> PathBuf {
        self.root.path().join("output.json")
    }

    pub(super) fn failure_file(&self) -> PathBuf {
        self.root.path().join("failure.json")
    }

    /// The JSON that the process wrote, or null if it wrote none.
    pub(super) async fn output(&self) -> Result<Value, Failure> {
        match read(&self.output_file(), MAX_OUTPUT_BYTES).await {
            Ok(Some(bytes)) => parse(&bytes),
            Ok(None) => Ok(Value::Null),
            Err(Unreadable::NotAFile) => Err(Failure::permanent("EBB_OUTPUT is no longer a regular file")),
            Err(Unreadable::TooLarge(size)) => Err(crate::task_runners::too_large(size)),
            Err(Unreadable::Io(error)) => {
                Err(Failure::permanent(format!("cannot read the file EBB_OUTPUT: {error}")))
            }
        }
    }

    /// What the process wrote about its failure, if it did.
    pub(super) async fn failure(&self) -> Result<Option<Vec<u8>>, Unreadable> {
        read(&self.failure_file(), description::MAX_BYTES).await
    }

    /// Removes the directory in a blocking thread: it may contain many files.
    pub(super) async fn remove(self) {
        // Leftovers do no harm: the directory's name is never used again.
        let _ = tokio::task::spawn_blocking(|| self.root.close()).await;
    }
}

/// Why a file that a process wrote cannot be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    NotAFile,
    TooLarge(u64),
    Io(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAFile => f.write_str("it is no longer a regular file"),
            Self::TooLarge(bytes) => write!(f, "it has {bytes} bytes, which is too many"),
            Self::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

/// The content of a file that a process may have written; none if it did not.
async fn read(path: &Path, max_bytes: usize) -> Result<Option<Vec<u8>>, Unreadable> {
    // The program may have put a link there, to a file that it could not read itself, or a pipe without an end.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => return Err(Unreadable::NotAFile),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata().await?;
    if !found.is_file() {
        return Err(Unreadable::NotAFile);
    }
    if found.len() > max_bytes as u64 {
        return Err(Unreadable::TooLarge(found.len()));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).await?;
    Ok(Some(bytes))
}

fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::permanent(format!(
            "the file EBB_OUTPUT is not valid JSON: {error}; write exactly one JSON value to it, or nothing"
        ))
    })
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::transient(format!(
            "no space for the scratch directory at {path}: free some, or give this worker a larger disk ({error})"
        )),
        _ => Failure::transient(format!("cannot create the scratch directory at {path}: {error}")),
    }
}

#[cfg(test)]
mod tests;
