//! The scratch directory of a process: its input file, its output file and its working directory.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::Value;
use tempfile::TempDir;
use tokio::fs;
use tokio::io::AsyncReadExt;

use model::Failure;

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

    pub(super) fn output_file(&self) -> PathBuf {
        self.root.path().join("output.json")
    }

    /// The JSON that the process wrote, or null if it wrote none.
    pub(super) async fn output(&self) -> Result<Value, Failure> {
        let path = self.output_file();
        let unreadable =
            |error: io::Error| Failure::permanent(format!("cannot read the file EBB_OUTPUT: {error}"));
        // The program may have put a link there, to a file that it could not read itself, or a pipe without an end.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(&path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Value::Null),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => return Err(not_a_file()),
            Err(error) => return Err(unreadable(error)),
        };
        let found = file.metadata().await.map_err(unreadable)?;
        if !found.is_file() {
            return Err(not_a_file());
        }
        if found.len() > MAX_OUTPUT_BYTES as u64 {
            return Err(crate::task_runners::too_large(found.len()));
        }
        let mut bytes = Vec::new();
        file.take(MAX_OUTPUT_BYTES as u64 + 1).read_to_end(&mut bytes).await.map_err(unreadable)?;
        parse(&bytes)
    }

    /// Removes the directory in a blocking thread: it may contain many files.
    pub(super) async fn remove(self) {
        // Leftovers do no harm: the directory's name is never used again.
        let _ = tokio::task::spawn_blocking(|| self.root.close()).await;
    }
}

fn not_a_file() -> Failure {
    Failure::permanent("EBB_OUTPUT is no longer a regular file")
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
