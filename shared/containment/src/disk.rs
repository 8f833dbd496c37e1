//! How much a scratch folder contains.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often a folder is measured.
const INTERVAL: Duration = Duration::from_secs(1);

/// To measure a folder takes at most this part of a processor's time.
const MAX_SHARE: u32 = 20;

/// The unit of a file's blocks.
const BLOCK_BYTES: u64 = 512;

/// Measures a folder again and again, until it is larger than the maximum.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no clock but the system's")]
pub(crate) fn wait_for_more_than(maximum: u64, folder: &Path) {
    loop {
        let begun = Instant::now();
        if is_more_than(maximum, folder) {
            return;
        }
        thread::sleep(INTERVAL.max(begun.elapsed() * MAX_SHARE));
    }
}

/// Whether the files of a folder take more than the maximum. What the program removes or hides meanwhile does not count.
fn is_more_than(maximum: u64, folder: &Path) -> bool {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    let (mut total, mut linked) = (0, BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // That of a link itself.
            let Ok(found) = entry.metadata() else { continue };
            if found.nlink() > 1 && !found.is_dir() && !linked.insert((found.dev(), found.ino())) {
                continue;
            }
            total += found.blocks() * BLOCK_BYTES;
            if total > maximum {
                return true;
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_once_however_deep_they_are_and_whatever_links_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(folder.path().join("one"), vec![1; 100_000]).unwrap();
        fs::hard_link(folder.path().join("one"), inner.join("again")).unwrap();
        std::os::unix::fs::symlink("/", inner.join("everything")).unwrap();
        assert!(!is_more_than(180_000, folder.path()));
        fs::write(inner.join("two"), vec![1; 100_000]).unwrap();
        assert!(is_more_than(180_000, folder.path()));
        assert!(!is_more_than(180_000, &folder.path().join("missing")));
    }
}
