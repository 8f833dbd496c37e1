//! Secrets by reference: a config names them, and only the worker that runs it reads their values.
//!
//! They come from the environment or from a folder with one file each, which is how Cloud Run provides secrets from Secret
//! Manager. Files are read for each attempt, so that a new value applies from the next attempt on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use model::Failure;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};

use crate::config::Environment;

/// Shorter values are not masked everywhere: they would match unrelated text.
const MIN_MASKED_LENGTH: usize = 8;

/// Limits for the folder of secrets.
const MAX_FILES: usize = 1_000;
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// This process's own secrets.
const OURS: [&str; 3] = ["EBB_OPERATIONS_TOKEN", "EBB_SESSION_KEY", "EBB_SIGN_IN_CLIENT_SECRET"];

/// The prefix of variables with secrets.
const PREFIX: &str = "EBB_SECRET_";

/// Sources of secrets; none by default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    folders: Vec<PathBuf>,
    /// By the name of the variable.
    variables: BTreeMap<String, String>,
    /// Other secrets of this process, which workflows cannot name.
    own: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Variables `EBB_SECRET_NAME`, and files in the folder that `EBB_SECRETS_DIR` names.
    pub fn from_env(environment: &Environment) -> Self {
        let named = environment.iter().filter(|(name, _)| name.starts_with(PREFIX));
        Self {
            folders: environment.get("EBB_SECRETS_DIR").map(PathBuf::from).into_iter().collect(),
            variables: named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            own: environment.iter().flat_map(|(name, value)| hidden_in(name, value)).collect(),
        }
    }

    /// Adds the files in this folder.
    pub fn or_in(mut self, folder: PathBuf) -> Self {
        self.folders.push(folder);
        self
    }

    /// The named secrets, or which one is missing.
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
                // Editors end files with a newline, which is not part of the secret.
                Ok(text) => return Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::transient(format!("the secret `{name}` cannot be read: {error}")));
                }
            }
        }
        let variable = format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"));
        self.variables.get(&variable).cloned().ok_or_else(|| {
            Failure::permanent(format!(
                "this worker has no secret `{name}`: set its variable {variable}, or put the file `{name}` into the \
                 folder that EBB_SECRETS_DIR names"
            ))
        })
    }
}

impl Secrets {
    /// Every form of every secret in this process, named by the workflow or not: a task can find it in its environment, or
    /// get it from a server that knows it.
    pub async fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = self.variables.values().chain(&self.own).cloned().collect();
        for folder in &self.folders {
            known.extend(files_in(folder).await);
        }
        let mut forms: Vec<String> = known
            .iter()
            .filter(|secret| secret.len() >= MIN_MASKED_LENGTH)
            .flat_map(|secret| forms_of(secret))
            .collect();
        arrange(&mut forms);
        forms
    }
}

/// The secrets in a variable that no workflow can name.
fn hidden_in(name: &str, value: &str) -> Vec<String> {
    if OURS.contains(&name) {
        return vec![value.to_owned()];
    }
    let url = Url::parse(value).ok().filter(|_| name == "DATABASE_URL");
    let password = url.as_ref().and_then(Url::password);
    let decoded = password.map(|password| percent_decode_str(password).decode_utf8_lossy().into_owned());
    password.map(str::to_owned).into_iter().chain(decoded).collect()
}

/// The secrets in a folder's files. Unreadable files are skipped, since tasks cannot read them either.
async fn files_in(folder: &PathBuf) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return found };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let path = entry.path();
        let facts = tokio::fs::metadata(&path).await;
        if !facts.is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_FILE_BYTES) {
            continue;
        }
        if let Ok(text) = tokio::fs::read_to_string(&path).await {
            found.push(text.trim_end_matches(['\r', '\n']).to_owned());
        }
        if found.len() == MAX_FILES {
            break;
        }
    }
    found
}

/// Every form in which a secret may appear: plain, in a URL, in JSON, and in base64.
pub fn forms(secrets: &Map<String, Value>) -> Vec<String> {
    let mut forms: Vec<String> = secrets.values().filter_map(Value::as_str).flat_map(forms_of).collect();
    arrange(&mut forms);
    forms
}

/// The longest first: a secret inside another must not break the longer one's match.
fn arrange(forms: &mut Vec<String>) {
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms.retain(|form| !form.is_empty());
}

fn forms_of(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    // A URL keeps `/` if all of it is secret, and encodes it if the secret is a part.
    let (part, whole) = (encoded(secret, b"-._~"), encoded(secret, b"-._~/:?#[]@!$&'()*+,;=%"));
    let mut forms = vec![secret.to_owned(), json.trim_matches('"').to_owned(), part, whole];
    if secret.len() >= MIN_MASKED_LENGTH {
        forms.extend(in_base64(secret.as_bytes()));
        // As HTTP clients write it.
        if let Ok(mut url) = Url::parse("http://host/") {
            url.set_path(secret);
            url.set_query(Some(secret));
            forms.extend([
                url.path().trim_start_matches('/').to_owned(),
                url.query().unwrap_or_default().to_owned(),
            ]);
        }
    }
    forms
}

/// Base64 for each alignment of the secret in the encoded text, without the characters it shares with its neighbours.
fn in_base64(secret: &[u8]) -> impl Iterator<Item = String> {
    let groups = (0..3).map(|skipped| &secret[skipped..]).map(|rest| &rest[..rest.len() - rest.len() % 3]);
    groups
        .filter(|group| !group.is_empty())
        .flat_map(|group| [BASE64_STANDARD_NO_PAD.encode(group), BASE64_URL_SAFE_NO_PAD.encode(group)])
}

fn encoded(text: &str, kept: &[u8]) -> String {
    let encode = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Masks secrets in anything stored or shown.
#[derive(Clone, Debug, Default)]
pub struct Mask(Vec<String>);

impl Mask {
    /// Masks these, in every form.
    pub fn of(secrets: &Map<String, Value>) -> Self {
        Self(forms(secrets))
    }

    /// Masks these forms, too.
    pub fn and(mut self, forms: Vec<String>) -> Self {
        self.0.extend(forms);
        arrange(&mut self.0);
        self
    }

    /// Masks a text.
    pub fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), "***"))
    }

    /// Masks a value.
    pub fn value(&self, value: Value) -> Value {
        match value {
            _ if self.0.is_empty() => value,
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.text(&name), self.value(value))).collect()
            }
            Value::Number(number) if self.text(&number.to_string()) != number.to_string() => "***".into(),
            other => other,
        }
    }

    /// Masks a failure.
    pub fn failure(&self, failure: Failure) -> Failure {
        Failure { message: self.text(&failure.message), ..failure }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_from_its_file_and_a_missing_one_says_how_to_give_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("api-key"), "s3cret\n").unwrap();
        let secrets = Secrets::default().or_in(folder.path().to_owned());
        let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
        assert_eq!(found["api-key"], "s3cret");
        let failure = secrets.resolve(["other-key".to_owned()].into()).await.unwrap_err();
        assert!(failure.message.contains("EBB_SECRET_OTHER_KEY"), "{}", failure.message);
    }

    #[test]
    fn a_secret_is_masked_however_it_is_written() {
        let secrets = Map::from_iter([("hook".to_owned(), Value::from("T0/B\"0=x|^"))]);
        let mask = Mask::of(&secrets);
        for shown in
            ["T0/B\"0=x|^", "T0%2FB%220%3Dx%7C%5E", "T0/B\\\"0=x|^", "T0/B%220=x%7C%5E", "T0/B%220=x|^"]
        {
            let failure = mask.failure(Failure::permanent(format!("POST https://h/{shown} failed")));
            assert_eq!(failure.message, "POST https://h/*** failed", "{shown}");
        }
    }

    #[test]
    fn a_secret_is_masked_within_base64_wherever_it_begins() {
        let secrets = Map::from_iter([("pass".to_owned(), Value::from("correct-horse-battery"))]);
        for before in ["", "a", "ab", "ada:"] {
            let whole = BASE64_STANDARD_NO_PAD.encode(format!("{before}correct-horse-battery\n"));
            let shown = Mask::of(&secrets).text(&whole);
            assert!(shown.contains("***") && shown.len() <= 15, "{before}: {shown}");
        }
    }

    #[test]
    fn a_secret_within_another_does_not_spoil_it() {
        let secrets = [("a", "hunter2hunter2"), ("b", "zz-hunter2hunter2-aa")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), Value::from(value)));
        assert_eq!(Mask::of(&Map::from_iter(secrets)).text("it is zz-hunter2hunter2-aa"), "it is ***");
    }

    #[test]
    fn values_are_masked_in_names_texts_and_numbers() {
        let secrets = Map::from_iter([("pin".to_owned(), Value::from("12345678"))]);
        let told = json!({"12345678": ["x12345678", 12_345_678, 5]});
        assert_eq!(Mask::of(&secrets).value(told), json!({"***": ["x***", "***", 5]}));
    }

    #[tokio::test]
    async fn whatever_lies_in_the_folder_is_known_unless_it_is_too_short_to_tell() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("one", "long-enough\n"), ("two", "short"), ("three", "another-one")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let known = Secrets::default().or_in(folder.path().to_owned()).known().await;
        let has = |text: &str| known.iter().any(|form| form == text);
        assert!(has("long-enough") && has("another-one") && !has("short"), "{known:?}");
    }

    #[tokio::test]
    async fn secrets_of_the_environment_are_found_and_hidden_as_they_are_written_and_as_they_are() {
        let environment = Environment::from_iter([
            ("DATABASE_URL", "postgres://ebb:p%40ss-word@host/db"),
            ("EBB_SECRET_API_KEY", "key-of-the-api"),
            ("EBB_OPERATIONS_TOKEN", "token-of-operators"),
            ("PATH", "postgres://a:not-a-secret@c"),
        ]);
        let secrets = Secrets::from_env(&environment);
        let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
        assert_eq!(found["api-key"], "key-of-the-api");
        let known = secrets.known().await;
        for hidden in ["p%40ss-word", "p@ss-word", "key-of-the-api", "token-of-operators"] {
            assert!(known.iter().any(|form| form == hidden), "{hidden}: {known:?}");
        }
        assert!(known.iter().all(|form| form != "not-a-secret"), "{known:?}");
        assert!(!format!("{environment:?} {secrets:?}").contains("key-of-the-api"));
    }
}
