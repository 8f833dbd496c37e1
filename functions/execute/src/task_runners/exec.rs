//! Custom task types that programs on the worker implement, in any language.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use model::{Failure, TaskKind, TypeName};
use serde_json::Value;
use tokio::fs;

use super::{TaskRunner, Unfinished};
use crate::job::{Context, Job};
use crate::process::{self, Program, Scratch};

/// Runs the program of a custom task type. It works like the program of a `bash` task, and finds the settings of the task as
/// `config` in the file `EBB_INPUT`, beside its `type`: one program may implement several.
pub struct Exec {
    name: TypeName,
    program: PathBuf,
}

impl Exec {
    /// The program of that file, for tasks of that type.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be executed.
    pub fn new(name: TypeName, program: &Path) -> Result<Self, String> {
        let problem =
            |why: &str| format!("cannot run {} for tasks of type `{name}`: {why}", program.display());
        let found = program.canonicalize().map_err(|error| problem(&error.to_string()))?;
        let metadata = found.metadata().map_err(|error| problem(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(problem("it is not a file"));
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(problem("it is not executable; run `chmod +x` on it"));
        }
        Ok(Self { name, program: found })
    }
}

#[async_trait]
impl TaskRunner for Exec {
    fn kind(&self) -> TaskKind {
        TaskKind::Custom(self.name.clone())
    }

    async fn run(&self, job: &Job, context: &Context) -> Result<Value, Unfinished> {
        let mut job = job.clone();
        if let Value::Object(document) = &mut job.document {
            document.insert("type".into(), self.name.as_str().into());
            document.insert("config".into(), job.config.clone());
        }
        let scratch = Scratch::prepare(&job, context).await?;
        let file = self.executable(&scratch, context).await?;
        let mut program = Program::new(&file.display().to_string(), "name another file with --exec");
        program.script = Some(file);
        process::run(program, scratch, &job, context).await
    }
}

impl Exec {
    /// The file, or a copy that the user of the program can execute.
    async fn executable(&self, scratch: &Scratch, context: &Context) -> Result<PathBuf, Failure> {
        if context.containment.is_none() || process::is_readable_by_all(&self.program) {
            return Ok(self.program.clone());
        }
        let unreadable = |error: std::io::Error| {
            Failure::transient(format!("cannot read {}: {error}", self.program.display()))
        };
        let copy = scratch.write("program", fs::read(&self.program).await.map_err(unreadable)?).await?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755)).await.map_err(unreadable)?;
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_executable_file_implements_a_type() {
        let folder = tempfile::tempdir().unwrap();
        let (name, file) = (TypeName::new("raster.validate").unwrap(), folder.path().join("validate"));
        let problem = |file: &Path| Exec::new(name.clone(), file).err().unwrap();
        assert!(problem(&file).contains("No such file"), "{}", problem(&file));
        assert!(problem(folder.path()).contains("not a file"));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(problem(&file).contains("chmod +x"), "{}", problem(&file));
        std::fs::set_permissions(&file, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(Exec::new(name.clone(), &file).ok().unwrap().kind(), TaskKind::Custom(name));
    }
}
