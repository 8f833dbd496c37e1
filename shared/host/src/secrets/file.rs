//! Reads the file of a secret.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::MAX_BYTES;

/// The maximum number of links that lead to one file. Kubernetes needs two.
const MAX_LINKS: usize = 8;

/// The secret in a file of a folder, without the final newline that editors add. Only a regular file of at most 64 KiB has
/// one: a device or pipe may never end. Links are followed as long as they stay in the folder, since that is how mounted
/// secrets change at once (`token` leads to `..data/token`, and `..data` to the newest folder).
pub(super) async fn read(folder: PathBuf, name: OsString) -> io::Result<String> {
    tokio::task::spawn_blocking(move || read_blocking(&folder, name)).await.map_err(io::Error::other)?
}

fn read_blocking(folder: &Path, name: OsString) -> io::Result<String> {
    let file = open_beneath(folder, name)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    // The size may change after it was read.
    file.take(MAX_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_BYTES {
        return Err(io::Error::other(format!("its file has more than {} KiB", MAX_BYTES / 1024)));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

/// Opens what a name in a folder leads to. Each step is taken from an open folder and follows no link by itself, so that a
/// link that changes meanwhile leads nowhere else. `openat2` would do the same where it exists: not in gVisor, which runs
/// services of Cloud Run.
fn open_beneath(folder: &Path, name: OsString) -> io::Result<File> {
    let mut folders = vec![open(CWD, folder.as_os_str(), OFlags::DIRECTORY)?];
    let mut steps = VecDeque::from([name]);
    let mut links = 0;
    while let Some(step) = steps.pop_front() {
        if step == ".." {
            folders.pop();
            if folders.is_empty() {
                return Err(leads_out());
            }
            continue;
        }
        let inside = folders.last().expect("the secrets' folder stays, or the step was refused");
        match readlinkat(inside, &step, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other(format!("more than {MAX_LINKS} links lead to its file")));
                }
                for part in Path::new(OsStr::from_bytes(target.to_bytes())).components().rev() {
                    match part {
                        Component::Normal(_) | Component::ParentDir => {
                            steps.push_front(part.as_os_str().to_owned());
                        }
                        Component::CurDir => {}
                        Component::RootDir | Component::Prefix(_) => return Err(leads_out()),
                    }
                }
            }
            Err(Errno::INVAL) if steps.is_empty() => {
                // Without blocking: a pipe would wait for its writer.
                return Ok(File::from(open(inside, &step, OFlags::NOFOLLOW | OFlags::NONBLOCK)?));
            }
            Err(Errno::INVAL) => {
                let next = open(inside, &step, OFlags::NOFOLLOW | OFlags::DIRECTORY)?;
                folders.push(next);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("it is not a regular file"))
}

fn open(folder: impl std::os::fd::AsFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty())?)
}

fn leads_out() -> io::Error {
    io::Error::other(
        "its file is a link out of the folder of secrets, and such links are not followed: put the file itself there",
    )
}
