//! Whether a path leads to the files of secrets.

use std::path::{Path, PathBuf};

/// The longest path that is examined, in bytes: as on Linux.
const MAX_PATH: usize = 4_096;

/// Whether a path leads into one of the folders, also through links and `..`, and also where nothing exists there: a
/// tenant must not find out that either. What takes too long to follow counts as if it did.
pub(super) fn leads_into(path: &Path, folders: &[PathBuf]) -> bool {
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let nearest = nearest(path);
    !folders.is_empty() && nearest.is_none_or(|real| folders.iter().any(|folder| real.starts_with(folder)))
}

/// The place of a path, or of the nearest one above it that exists.
fn nearest(path: &Path) -> Option<PathBuf> {
    let mut path = std::path::absolute(path).ok().filter(|path| path.as_os_str().len() <= MAX_PATH)?;
    for _ in 0..MAX_PATH {
        if let Ok(real) = path.canonicalize() {
            return Some(real);
        }
        // Links may lead to nothing.
        let above = path.parent()?;
        path = path.read_link().map_or_else(|_| above.to_owned(), |target| above.join(target));
    }
    None
}
