//! Tokens that `ebb login` keeps: one for each address, in a file that only its owner may read.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// The address that was signed in to last.
    pub last: Option<String>,
    /// The token of each address.
    pub tokens: BTreeMap<String, String>,
}

impl Credentials {
    /// Where they are kept: in `$XDG_CONFIG_HOME/ebb` or `~/.config/ebb`; none where there is no home.
    pub fn path() -> Option<PathBuf> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
        Some(config.join("ebb/credentials.json"))
    }

    /// Reads them; none where there are none, or none that can be read.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The token of an address.
    pub fn token(&self, url: &str) -> Option<&String> {
        self.tokens.get(url.trim_end_matches('/'))
    }

    /// Keeps a token for an address, from now on the one that is meant.
    pub fn keep(&mut self, url: &str, token: &str) {
        let url = url.trim_end_matches('/').to_owned();
        self.tokens.insert(url.clone(), token.to_owned());
        self.last = Some(url);
    }

    /// Writes them, aside and then into place, readable by their owner only.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let draft = path.with_extension("new");
        // One that was left behind may be readable by others.
        let _ = fs::remove_file(&draft);
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        out.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        out.sync_all()?;
        fs::rename(draft, path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn credentials_come_back_and_nobody_else_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ebb/credentials.json");
        assert_eq!(Credentials::read(&path), Credentials::default());
        let mut credentials = Credentials::default();
        credentials.keep("https://one.test/", "first");
        credentials.keep("https://two.test", "second");
        credentials.write(&path).unwrap();
        credentials.write(&path).unwrap();
        let read = Credentials::read(&path);
        assert_eq!(read.token("https://one.test").map(String::as_str), Some("first"));
        assert_eq!(read.last.as_deref(), Some("https://two.test"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
