//! Finds the Postgres installations of the machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::Kind;
use crate::kind::major;

/// The oldest supported major version.
const MIN_VERSION: u32 = 15;

/// Folders with one installation per version: Debian, Red Hat, Homebrew on ARM and on Intel.
const PREFIXES: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];

/// The supported installations: those on the PATH first, then the newest.
pub(crate) fn installed() -> Vec<Kind> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut others: Vec<Kind> =
        PREFIXES.iter().flat_map(|prefix| below(*prefix)).filter_map(inspect).collect();
    others.sort_by_key(|kind| std::cmp::Reverse(number(kind)));

    let mut seen = BTreeSet::new();
    let on_path = env::split_paths(&path).filter_map(inspect);
    on_path.chain(others).filter(|kind| seen.insert(kind.to_string())).collect()
}

fn below((parent, prefix): (&str, &str)) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path().join("bin")).collect()
}

/// The Postgres in `bin`, if there is one and it is supported.
fn inspect(bin: PathBuf) -> Option<Kind> {
    // The programs are next to the target of a link on the PATH.
    let server = fs::canonicalize(bin.join("postgres")).ok()?;
    let bin = server.parent().filter(|bin| bin.join("initdb").exists())?;
    let kind = Kind::Installed { version: version(&server)?, bin: bin.to_owned() };
    (number(&kind) >= MIN_VERSION).then_some(kind)
}

/// `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)` → `15.14`.
fn version(server: &Path) -> Option<String> {
    let output = Command::new(server).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(2).map(str::to_owned)
}

fn number(kind: &Kind) -> u32 {
    match kind {
        Kind::Installed { version, .. } | Kind::Compiled { version } => major(version).parse().unwrap_or(0),
    }
}
