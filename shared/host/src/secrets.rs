//! Secrets by reference: a config names them, only the worker that runs the attempt reads their values, and they are
//! redacted from everything that is stored or shown.
//!
//! Each belongs to a tenant. They come from environment variables `EBB_SECRET_TENANT__NAME`, as which Cloud Run provides those
//! of Secret Manager, or from files `TENANT/NAME` in a folder. Files are read for each attempt, so that a new value applies
//! from the next attempt on.
//!
//! Invariant: a secret is looked up only by a [`TenantName`] and a [`SecretName`], which are never paths; no two tenants share
//! a file or a variable.

mod encoded;
mod file;
mod reach;
mod redactor;
#[cfg(test)]
mod tests;
mod variable;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use model::{Failure, SecretName, TenantName};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};

use crate::config::Environment;

pub use redactor::Redactor;
use variable::Variable;

/// Shorter secrets are redacted only where the attempt uses them: they would match unrelated text.
const MIN_REDACTED_LENGTH: usize = 8;

const MAX_FILES: usize = 1_000;

/// Variables with secrets of the process itself.
const OWN_SECRETS: [&str; 3] = ["EBB_OPERATIONS_TOKEN", "EBB_SESSION_KEY", "EBB_SIGN_IN_CLIENT_SECRET"];

/// The maximum size of a secret.
const MAX_BYTES: usize = 64 * 1024;

/// Sources of secrets; none by default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    folders: Vec<PathBuf>,
    /// Secrets for workflows, by their tenant and name.
    variables: BTreeMap<Variable, String>,
    /// Secrets of the process itself, which workflows cannot refer to.
    own: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Secrets from variables `EBB_SECRET_TENANT__NAME`, and from files in the folder `EBB_SECRETS_DIR`. The error says what is
    /// wrong with each variable.
    pub fn from_env(environment: &Environment) -> Result<Self, Vec<String>> {
        let (mut variables, mut problems) = (BTreeMap::new(), Vec::new());
        for (name, value) in environment.iter().filter(|(name, _)| name.starts_with(Variable::PREFIX)) {
            match Variable::parse(name) {
                Ok(_) if value.len() > MAX_BYTES => {
                    problems.push(format!("{name} has more than {} KiB", MAX_BYTES / 1024));
                }
                Ok(variable) => drop(variables.insert(variable, value.to_owned())),
                Err(problem) => problems.push(problem),
            }
        }
        let folders = environment.get("EBB_SECRETS_DIR").map(PathBuf::from).into_iter().collect();
        let own = environment.iter().flat_map(|(name, value)| own_secrets(name, value)).collect();
        if problems.is_empty() { Ok(Self { folders, variables, own }) } else { Err(problems) }
    }

    /// Adds secrets from the files in a folder, which has a folder for each tenant.
    pub fn with_folder(mut self, folder: PathBuf) -> Self {
        self.folders.push(folder);
        self
    }

    /// Whether a path leads into a folder with secrets, whichever tenant's, through links and `..` too.
    pub async fn are_reached_by(&self, path: &Path) -> bool {
        let (path, folders) = (path.to_owned(), self.folders.clone());
        // Without an answer, they may be.
        tokio::task::spawn_blocking(move || reach::leads_into(&path, &folders)).await.unwrap_or(true)
    }

    /// The secrets of one tenant.
    pub fn of<'a>(&'a self, tenant: &'a TenantName) -> TenantSecrets<'a> {
        TenantSecrets { sources: self, tenant }
    }
}

/// The secrets that workflows of a tenant may use.
#[derive(Clone, Copy, Debug)]
pub struct TenantSecrets<'a> {
    sources: &'a Secrets,
    tenant: &'a TenantName,
}

impl TenantSecrets<'_> {
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
        tracing::debug!("Looking up the secret `{name}`");
        for folder in self.folders() {
            match file::read(folder, name.as_str().into()).await {
                Ok(secret) => return Ok(secret),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::transient(format!("cannot read the secret `{name}`: {error}")));
                }
            }
        }
        let (variable, tenant) = (Variable::of(self.tenant, name), self.tenant);
        self.sources.variables.get(&variable).cloned().ok_or_else(|| {
            Failure::permanent(format!(
                "tenant `{tenant}` has no secret `{name}` on this worker: set the variable {variable}, or create the file \
                 `{tenant}/{name}` in the folder EBB_SECRETS_DIR"
            ))
        })
    }

    /// Every secret of the tenant that is long enough to be redacted everywhere, whether or not the workflow refers to it:
    /// a task may receive it from a server. And those of the process itself. Other tenants' are not redacted: a task could
    /// find out whether its guess is right.
    pub async fn all(&self) -> Vec<String> {
        let variables = self.sources.variables.iter().filter(|(variable, _)| variable.is_of(self.tenant));
        let mut secrets: Vec<String> =
            variables.map(|(_, value)| value).chain(&self.sources.own).cloned().collect();
        for folder in self.folders() {
            secrets.extend(files_in(&folder).await);
        }
        secrets.retain(|secret| secret.len() >= MIN_REDACTED_LENGTH);
        secrets
    }

    /// The tenant's folder in each folder with secrets.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.sources.folders.iter().map(|folder| folder.join(self.tenant.as_str()))
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
        found.extend(file::read(folder.to_owned(), entry.file_name()).await.ok());
    }
    found
}
