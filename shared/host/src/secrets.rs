//! Secrets by reference: a config names them, only the worker that runs the attempt reads their values, and they are
//! redacted from everything that is stored or shown.
//!
//! They come from environment variables or from a folder with one file each, which is how Cloud Run mounts secrets of Secret
//! Manager. Files are read for each attempt, so that a new value applies from the next attempt on.
//!
//! Invariant: a secret is looked up only by a [`SecretName`], which is never a path.

mod encoded;
mod file;
mod redactor;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use model::{Failure, SecretName};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};

use crate::config::Environment;

pub use redactor::Redactor;

/// Shorter secrets are redacted only where the attempt uses them: they would match unrelated text.
const MIN_REDACTED_LENGTH: usize = 8;

const MAX_FILES: usize = 1_000;

/// Variables with secrets of the process itself.
const OWN_SECRETS: [&str; 3] = ["EBB_OPERATIONS_TOKEN", "EBB_SESSION_KEY", "EBB_SIGN_IN_CLIENT_SECRET"];

/// The prefix of variables with secrets for workflows.
const PREFIX: &str = "EBB_SECRET_";

/// Sources of secrets; none by default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    folders: Vec<PathBuf>,
    /// Secrets for workflows, by the name of the variable.
    variables: BTreeMap<String, String>,
    /// Secrets of the process itself, which workflows cannot refer to.
    own: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Secrets from variables `EBB_SECRET_NAME`, and from files in the folder `EBB_SECRETS_DIR`.
    pub fn from_env(environment: &Environment) -> Self {
        let named = environment.iter().filter(|(name, _)| name.starts_with(PREFIX));
        Self {
            folders: environment.get("EBB_SECRETS_DIR").map(PathBuf::from).into_iter().collect(),
            variables: named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            own: environment.iter().flat_map(|(name, value)| own_secrets(name, value)).collect(),
        }
    }

    /// Adds secrets from the files in a folder.
    pub fn with_folder(mut self, folder: PathBuf) -> Self {
        self.folders.push(folder);
        self
    }

    /// The values of the named secrets. The failure names a missing one.
    pub async fn resolve(&self, names: BTreeSet<String>) -> Result<Map<String, Value>, Failure> {
        let mut secrets = Map::new();
        for name in names {
            // Registered versions may be older than the rule for names.
            let checked = SecretName::new(&name).map_err(|error| Failure::permanent(error.to_string()))?;
            secrets.insert(name, Value::String(self.find(&checked).await?));
        }
        Ok(secrets)
    }

    async fn find(&self, name: &SecretName) -> Result<String, Failure> {
        for folder in &self.folders {
            match file::read(folder.join(name.as_str())).await {
                Ok(secret) => return Ok(secret),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::transient(format!("cannot read the secret `{name}`: {error}")));
                }
            }
        }
        let variable = format!("{PREFIX}{}", name.as_str().to_uppercase().replace('-', "_"));
        self.variables.get(&variable).cloned().ok_or_else(|| {
            Failure::permanent(format!(
                "this worker has no secret `{name}`: set its variable {variable}, or create the file `{name}` in \
                 the folder EBB_SECRETS_DIR"
            ))
        })
    }

    /// Every secret in this process that is long enough to be redacted everywhere, whether or not the workflow refers to it:
    /// a task can find it in its environment, or receive it from a server.
    pub async fn all(&self) -> Vec<String> {
        let mut secrets: Vec<String> = self.variables.values().chain(&self.own).cloned().collect();
        for folder in &self.folders {
            secrets.extend(files_in(folder).await);
        }
        secrets.retain(|secret| secret.len() >= MIN_REDACTED_LENGTH);
        secrets
    }
}

/// The secrets in a variable that workflows cannot refer to.
fn own_secrets(name: &str, value: &str) -> Vec<String> {
    if OWN_SECRETS.contains(&name) {
        return vec![value.to_owned()];
    }
    let url = Url::parse(value).ok().filter(|_| name == "DATABASE_URL");
    let password = url.as_ref().and_then(Url::password);
    let decoded = password.map(|password| percent_decode_str(password).decode_utf8_lossy().into_owned());
    password.map(str::to_owned).into_iter().chain(decoded).collect()
}

/// The secrets in a folder's files. Unreadable files are skipped, since tasks cannot read them either.
async fn files_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return found };
    while found.len() < MAX_FILES
        && let Ok(Some(entry)) = entries.next_entry().await
    {
        found.extend(file::read(entry.path()).await.ok());
    }
    found
}
