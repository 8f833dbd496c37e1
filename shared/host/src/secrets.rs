//! Secrets by reference: a config names them, only the worker that runs the attempt reads their values, and they are
//! redacted from everything that is stored or shown.
//!
//! They come from environment variables or from a folder with one file each, which is how Cloud Run mounts secrets of Secret
//! Manager. Files are read for each attempt, so that a new value applies from the next attempt on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use model::Failure;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use serde_json::{Map, Value};

use crate::config::Environment;

/// Shorter secrets are redacted only where the attempt uses them: they would match unrelated text.
const MIN_REDACTED_LENGTH: usize = 8;

/// What is encoded in a component of a URL: all but the unreserved characters (RFC 3986).
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is encoded in a whole URL: the same, except for reserved characters.
const URL: &AsciiSet = &{
    let mut set = COMPONENT.remove(b'%');
    let reserved = b"/:?#[]@!$&'()*+,;=";
    let mut at = 0;
    while at < reserved.len() {
        set = set.remove(reserved[at]);
        at += 1;
    }
    set
};

const MAX_FILES: usize = 1_000;
const MAX_FILE_BYTES: u64 = 64 * 1024;

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
            let secret = self.find(&name).await?;
            secrets.insert(name, Value::String(secret));
        }
        Ok(secrets)
    }

    async fn find(&self, name: &str) -> Result<String, Failure> {
        for folder in &self.folders {
            match tokio::fs::read_to_string(folder.join(name)).await {
                // Editors add a final newline, which is not part of the secret.
                Ok(text) => return Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::transient(format!("cannot read the secret `{name}`: {error}")));
                }
            }
        }
        let variable = format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"));
        self.variables.get(&variable).cloned().ok_or_else(|| {
            Failure::permanent(format!(
                "this worker has no secret `{name}`: set its variable {variable}, or create the file `{name}` in \
                 the folder EBB_SECRETS_DIR"
            ))
        })
    }

    /// Every form of every secret in this process, whether or not the workflow refers to it: a task can find it in its
    /// environment, or receive it from a server.
    pub async fn all_forms(&self) -> Vec<String> {
        let mut secrets: Vec<String> = self.variables.values().chain(&self.own).cloned().collect();
        for folder in &self.folders {
            secrets.extend(files_in(folder).await);
        }
        secrets
            .iter()
            .filter(|secret| secret.len() >= MIN_REDACTED_LENGTH)
            .flat_map(|secret| forms_of(secret))
            .collect()
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
async fn files_in(folder: &PathBuf) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return found };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let path = entry.path();
        let metadata = tokio::fs::metadata(&path).await;
        if !metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES) {
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

/// Every form in which these secrets may appear: plain, in a URL, in JSON, and in base64.
pub fn forms(secrets: &Map<String, Value>) -> impl Iterator<Item = String> {
    secrets.values().filter_map(Value::as_str).flat_map(forms_of)
}

fn forms_of(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    // A component of a URL encodes `/` and the like; a whole URL keeps them.
    let encode = |set| utf8_percent_encode(secret, set).to_string();
    let (component, whole) = (encode(COMPONENT), encode(URL));
    let mut forms = vec![secret.to_owned(), json.trim_matches('"').to_owned(), component, whole];
    if secret.len() >= MIN_REDACTED_LENGTH {
        forms.extend(in_base64(secret.as_bytes()));
        // As HTTP clients encode paths and queries.
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

/// Base64 for each alignment of the secret in the encoded text, without the characters that also encode its neighbours.
fn in_base64(secret: &[u8]) -> impl Iterator<Item = String> {
    let groups = (0..3).map(|skipped| &secret[skipped..]).map(|rest| &rest[..rest.len() - rest.len() % 3]);
    groups
        .filter(|group| !group.is_empty())
        .flat_map(|group| [BASE64_STANDARD_NO_PAD.encode(group), BASE64_URL_SAFE_NO_PAD.encode(group)])
}

/// Replaces secrets by `***`.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// The longest first: a secret inside another must not break the longer one's match.
    forms: Vec<String>,
}

impl Redactor {
    /// Redacts these secrets, in every form.
    pub fn of(secrets: &Map<String, Value>) -> Self {
        let mut redactor = Self::default();
        redactor.add(forms(secrets));
        redactor
    }

    /// Redacts these texts, too.
    pub fn add(&mut self, forms: impl IntoIterator<Item = String>) {
        self.forms.extend(forms.into_iter().filter(|form| !form.is_empty()));
        self.forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.forms.dedup();
    }

    /// The same redactor, for these texts, too.
    pub fn and(mut self, forms: impl IntoIterator<Item = String>) -> Self {
        self.add(forms);
        self
    }

    /// The length of the longest text to redact, in bytes.
    pub fn longest(&self) -> usize {
        self.forms.first().map_or(0, String::len)
    }

    /// Replaces each known secret in a text.
    pub fn text(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = Cow::Owned(text.replace(form.as_str(), "***"));
            }
        }
        text.into_owned()
    }

    /// Redacts all texts, field names and numbers in a value.
    pub fn value(&self, value: Value) -> Value {
        match value {
            _ if self.forms.is_empty() => value,
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.text(&name), self.value(value))).collect()
            }
            Value::Number(number) if self.text(&number.to_string()) != number.to_string() => "***".into(),
            other => other,
        }
    }

    /// Redacts the message of a failure.
    pub fn failure(&self, failure: Failure) -> Failure {
        Failure { message: self.text(&failure.message), ..failure }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_from_its_file_and_the_error_of_a_missing_one_explains_how_to_set_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("api-key"), "s3cret\n").unwrap();
        let secrets = Secrets::default().with_folder(folder.path().to_owned());
        let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
        assert_eq!(found["api-key"], "s3cret");
        let failure = secrets.resolve(["other-key".to_owned()].into()).await.unwrap_err();
        assert!(failure.message.contains("EBB_SECRET_OTHER_KEY"), "{}", failure.message);
    }

    #[test]
    fn a_secret_is_redacted_in_every_form() {
        let secrets = Map::from_iter([("hook".to_owned(), Value::from("T0/B\"0=x|^"))]);
        let redactor = Redactor::of(&secrets);
        for shown in
            ["T0/B\"0=x|^", "T0%2FB%220%3Dx%7C%5E", "T0/B\\\"0=x|^", "T0/B%220=x%7C%5E", "T0/B%220=x|^"]
        {
            let failure = redactor.failure(Failure::permanent(format!("POST https://h/{shown} failed")));
            assert_eq!(failure.message, "POST https://h/*** failed", "{shown}");
        }
    }

    #[test]
    fn a_secret_is_redacted_within_base64_at_every_alignment() {
        let secrets = Map::from_iter([("pass".to_owned(), Value::from("correct-horse-battery"))]);
        for before in ["", "a", "ab", "ada:"] {
            let whole = BASE64_STANDARD_NO_PAD.encode(format!("{before}correct-horse-battery\n"));
            let shown = Redactor::of(&secrets).text(&whole);
            assert!(shown.contains("***") && shown.len() <= 15, "{before}: {shown}");
        }
    }

    #[test]
    fn a_secret_inside_another_does_not_break_its_match() {
        let secrets = [("a", "hunter2hunter2"), ("b", "zz-hunter2hunter2-aa")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), Value::from(value)));
        assert_eq!(Redactor::of(&Map::from_iter(secrets)).text("it is zz-hunter2hunter2-aa"), "it is ***");
    }

    #[test]
    fn field_names_texts_and_numbers_are_redacted() {
        let secrets = Map::from_iter([("pin".to_owned(), Value::from("12345678"))]);
        let value = json!({"12345678": ["x12345678", 12_345_678, 5]});
        assert_eq!(Redactor::of(&secrets).value(value), json!({"***": ["x***", "***", 5]}));
    }

    #[tokio::test]
    async fn all_secrets_in_the_folder_are_redacted_unless_they_are_short() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("one", "long-enough\n"), ("two", "short"), ("three", "another-one")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let forms = Secrets::default().with_folder(folder.path().to_owned()).all_forms().await;
        let has = |text: &str| forms.iter().any(|form| form == text);
        assert!(has("long-enough") && has("another-one") && !has("short"), "{forms:?}");
    }

    #[tokio::test]
    async fn secrets_in_the_environment_are_resolved_and_redacted() {
        let environment = Environment::from_iter([
            ("DATABASE_URL", "postgres://ebb:p%40ss-word@host/db"),
            ("EBB_SECRET_API_KEY", "key-of-the-api"),
            ("EBB_OPERATIONS_TOKEN", "token-of-operators"),
            ("PATH", "postgres://a:not-a-secret@c"),
        ]);
        let secrets = Secrets::from_env(&environment);
        let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
        assert_eq!(found["api-key"], "key-of-the-api");
        let forms = secrets.all_forms().await;
        for secret in ["p%40ss-word", "p@ss-word", "key-of-the-api", "token-of-operators"] {
            assert!(forms.iter().any(|form| form == secret), "{secret}: {forms:?}");
        }
        assert!(forms.iter().all(|form| form != "not-a-secret"), "{forms:?}");
        assert!(!format!("{environment:?} {secrets:?}").contains("key-of-the-api"));
    }
}
