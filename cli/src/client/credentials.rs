//! The tokens that `ebb login` stores: one per server, in a file that only its owner can read.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The tokens that `ebb login` stored, by server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// The server of the last sign-in.
    pub last: Option<String>,
    /// The tokens, by the address of the server.
    pub tokens: BTreeMap<String, String>,
}

impl Credentials {
    /// The path of the file: in `$XDG_CONFIG_HOME/ebb` or `~/.config/ebb`; none without a home folder.
    pub fn path() -> Option<PathBuf> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
        Some(config.join("ebb/credentials.json"))
    }

    /// Reads the file. A missing or unreadable file counts as empty.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The token of a server.
    pub fn token(&self, url: &str) -> Option<&String> {
        self.tokens.get(url.trim_end_matches('/'))
    }

    /// Stores the token of a server, which becomes the default.
    pub fn insert(&mut self, url: &str, token: &str) {
        let url = url.trim_end_matches('/').to_owned();
        self.tokens.insert(url.clone(), token.to_owned());
        self.last = Some(url);
    }

    /// Writes the file, readable only by its owner: as a temporary file that is renamed.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let draft = path.with_extension("new");
        // A leftover file may be readable by others.
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
    fn credentials_are_read_back_and_only_the_owner_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ebb/credentials.json");
        assert_eq!(Credentials::read(&path), Credentials::default());
        let mut credentials = Credentials::default();
        credentials.insert("https://one.test/", "first");
        credentials.insert("https://two.test", "second");
        credentials.write(&path).unwrap();
        credentials.write(&path).unwrap();
        let read = Credentials::read(&path);
        assert_eq!(read.token("https://one.test").map(String::as_str), Some("first"));
        assert_eq!(read.last.as_deref(), Some("https://two.test"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
