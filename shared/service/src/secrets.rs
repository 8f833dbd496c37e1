//! Secrets by reference: a config names them, and only whoever carries it out learns what they are.
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
    pub async fn resolve(&self, names: BTreeSet<String>) -> Result<Map<String, Value>, Failure> {
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

/// Every form in which a secret may turn up: as it is, within an address, and within JSON.
pub fn forms(secrets: &Map<String, Value>) -> Vec<String> {
    let mut forms: Vec<String> = secrets.values().filter_map(Value::as_str).flat_map(forms_of).collect();
    forms.sort();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

fn forms_of(secret: &str) -> [String; 4] {
    let json = Value::from(secret).to_string();
    // An address keeps `/` where the whole of it is a secret, and encodes it where the secret is a part.
    let (part, whole) = (encoded(secret, b"-._~"), encoded(secret, b"-._~/:?#[]@!$&'()*+,;=%"));
    [secret.to_owned(), json.trim_matches('"').to_owned(), part, whole]
}

fn encoded(text: &str, kept: &[u8]) -> String {
    let encode = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// The failure without the secrets that its words may show: it is kept and shown.
pub fn masked(failure: Failure, secrets: &Map<String, Value>) -> Failure {
    let message =
        forms(secrets).iter().fold(failure.message, |text, form| text.replace(form.as_str(), "***"));
    Failure { message, ..failure }
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

    #[test]
    fn a_secret_is_masked_however_it_is_written() {
        let secrets = Map::from_iter([("hook".to_owned(), Value::from("T0/B\"0=x"))]);
        for shown in ["T0/B\"0=x", "T0%2FB%220%3Dx", "T0/B\\\"0=x", "T0/B%220=x"] {
            let failure = masked(Failure::permanent(format!("POST https://h/{shown} failed")), &secrets);
            assert_eq!(failure.message, "POST https://h/*** failed");
        }
    }
}
