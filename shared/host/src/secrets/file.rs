//! Reads the file of a secret.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

const MAX_BYTES: u64 = 64 * 1024;

/// The secret in a file, without the final newline that editors add. Only a regular file of at most 64 KiB has one: a link
/// may lead anywhere, and a device or pipe may never end.
pub(super) async fn read(path: PathBuf) -> io::Result<String> {
    tokio::task::spawn_blocking(move || read_blocking(&path)).await.map_err(io::Error::other)?
}

fn read_blocking(path: &Path) -> io::Result<String> {
    // Without blocking: a pipe would wait for its writer.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let options = File::options().read(true).custom_flags(flags.cast_signed()).open(path);
    let file = options.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => io::Error::other(
            "its file is a link, and links are not followed: replace it with the file itself",
        ),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    // The size may change after it was read.
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("its file has more than {} KiB", MAX_BYTES / 1024)));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}
