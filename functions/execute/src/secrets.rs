//! Secrets by reference: a config names them, and only the worker that carries it out learns what they are.
//!
//! They come from the environment or from a folder with one file each, which is how Cloud Run shows secrets of Secret
//! Manager to a service. They are looked up for each attempt, so that a new value counts from the next attempt on.

use std::collections::BTreeSet;
use std::path::PathBuf;

use model::Failure;
use serde_json::{Map, Value};

/// Where secrets are found.
#[derive(Clone, Debug)]
pub struct Secrets {
    folders: Vec<PathBuf>,
}

impl Secrets {
    /// Variables `EBB_SECRET_NAME`, and files in the folder that `EBB_SECRETS_DIR` names.
    pub fn from_env() -> Self {
        Self { folders: std::env::var_os("EBB_SECRETS_DIR").map(PathBuf::from).into_iter().collect() }
    }

    /// The same, and files in this folder.
    pub fn or_in(mut self, folder: PathBuf) -> Self {
        self.folders.push(folder);
        self
    }

    /// The named secrets, or which one there is not.
    pub(crate) async fn resolve(&self, names: BTreeSet<String>) -> Result<Map<String, Value>, Failure> {
        let mut secrets = Map::new();
        for name in names {
            let secret = self.find(&name).await?;
            secrets.insert(name, Value::String(secret));
        }
        Ok(secrets)
    }

    async fn find(&self, name: &str) -> Result<String, Failure> {
        for folder in &self.folders {
            match tokio::fs::read_to_string(folder.join(name)).await {
                // Editors end files with a newline, which is no part of the secret.
                Ok(text) => return Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::transient(format!("the secret `{name}` cannot be read: {error}")));
                }
            }
        }
        let variable = format!("EBB_SECRET_{}", name.to_uppercase().replace('-', "_"));
        std::env::var(&variable).map_err(|_| {
            Failure::permanent(format!(
                "this worker has no secret `{name}`: set its variable {variable}, or put the file `{name}` into the \
                 folder that EBB_SECRETS_DIR names"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_from_its_file_and_a_missing_one_says_how_to_give_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("api-key"), "s3cret\n").unwrap();
        let secrets = Secrets { folders: vec![folder.path().to_owned()] };
        let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
        assert_eq!(found["api-key"], "s3cret");
        let failure = secrets.resolve(["other-key".to_owned()].into()).await.unwrap_err();
        assert!(failure.message.contains("EBB_SECRET_OTHER_KEY"), "{}", failure.message);
    }
}
