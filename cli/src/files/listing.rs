//! Finds and reads the YAML files below a folder. What cannot be read is a problem of its own and hides no other file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use language::Diagnostic;

/// The files that were found, and the problems of those that cannot be read.
#[derive(Default)]
pub(super) struct Listing {
    /// The path and the text of each file, by path.
    pub(super) texts: Vec<(String, String)>,
    /// Files, and folders that cannot be listed.
    pub(super) unreadable: Vec<Diagnostic>,
    /// The folders that were listed, so that a link to one of them does not list it again.
    folders: BTreeSet<PathBuf>,
}

impl Listing {
    /// Reads every YAML file below a folder; none if it does not exist.
    pub(super) fn below(folder: &Path) -> Self {
        let mut listing = Self::default();
        if exists(folder) {
            listing.enter(folder);
        }
        listing.texts.sort();
        listing
    }

    /// Reads a file that a program may consist of; none if no such file exists in the folder.
    pub(super) fn of_script(path: &Path, folder: &Path) -> Self {
        let mut listing = Self::default();
        // Links must not lead out of the folder.
        let is_there = || -> io::Result<bool> {
            Ok(path.canonicalize()?.starts_with(folder.canonicalize()?) && path.is_file())
        };
        match is_there() {
            Ok(true) => listing.read(path),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                listing.reject(path, &reason(&error))
            }
            Ok(false) | Err(_) => {}
        }
        listing
    }

    fn enter(&mut self, folder: &Path) {
        let listed = folder.canonicalize().and_then(|canonical| {
            let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
            Ok((canonical, entries.collect::<io::Result<BTreeSet<PathBuf>>>()?))
        });
        let (canonical, entries) = match listed {
            Ok(listed) => listed,
            // Somebody may have removed it since the folder above was listed.
            Err(_) if !exists(folder) => return,
            Err(error) => return self.reject(folder, &reason(&error)),
        };
        if !self.folders.insert(canonical) {
            return;
        }
        for path in entries.iter().filter(|path| !is_ignored(path)) {
            match is_yaml(path) {
                true => self.read(path),
                false if may_be_folder(path) => self.enter(path),
                false => {}
            }
        }
    }

    /// Reads one file, whatever its name is.
    pub(super) fn read(&mut self, path: &Path) {
        match read_text(path) {
            Ok(text) => self.texts.push((path.display().to_string(), text)),
            // An editor may have removed it since the folder was listed.
            Err(_) if !exists(path) => {}
            Err(why) => self.reject(path, &why),
        }
    }

    fn reject(&mut self, path: &Path, why: &str) {
        let problem = Diagnostic::of_file(path.display().to_string(), format!("cannot be read: {why}"));
        self.unreadable.push(problem);
    }
}

/// Whether there is such an entry, even if it is a link to nothing or cannot be accessed.
pub(super) fn exists(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether an entry is hidden, a backup or the lock file of an editor: `.a.yaml`, `#a.yaml#`, `a~`, `.#a.yaml`.
fn is_ignored(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(['.', '#', '~']) || name.ends_with(['~', '#'])
}

/// Whether it is a folder, or access is denied to what may be one.
fn may_be_folder(path: &Path) -> bool {
    match path.metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The text of a file, or why it has none. Only regular files are opened: a pipe would block the reader.
fn read_text(path: &Path) -> Result<String, String> {
    let read = fs::metadata(path).and_then(|metadata| match metadata.is_file() {
        true => fs::read_to_string(path).map(Some),
        false => Ok(None),
    });
    match read {
        Ok(text) => text.ok_or_else(|| "it is not a regular file".to_owned()),
        Err(error) => Err(reason(&error)),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        ErrorKind::NotFound => "it is a link to nothing".to_owned(),
        _ => error.to_string(),
    }
}
