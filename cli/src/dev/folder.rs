//! The data folder of `ebb dev`: locked by one process at a time; other commands find its address and token there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;

/// The data folder, locked until this is dropped or the process ends.
pub(super) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the data folder {}", path.display()))?;
        let path = path.canonicalize()?;
        // Under root, Postgres runs as another user and passes through; nobody else can list or read what is in it.
        let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        let lock = File::create(path.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another `ebb dev` uses {}: stop it, or choose another folder with --data", path.display());
        }
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the address and the admin's token for the other commands.
    pub(super) fn publish(&self, url: &str, token: &str) -> anyhow::Result<()> {
        let (draft, file) = (self.file("dev.json.new"), self.file("dev.json"));
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        writeln!(out, "{}", json!({"url": url, "token": token}))?;
        fs::rename(draft, file)?;
        Ok(())
    }
}
