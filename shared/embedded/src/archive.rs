//! The programs of a Postgres, compiled into this program.

use std::fs;
use std::path::{Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;

use crate::Error;

/// The version of the programs in the archive.
pub(crate) const VERSION: &str = "17.5";

static ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/postgres.tar.zst"));

/// Unpacks the programs below `home`, unless they are there, and returns their folder.
pub(crate) fn unpack(home: &Path) -> Result<PathBuf, Error> {
    let folder = home.join(format!("programs-{VERSION}"));
    if !folder.exists() {
        let partial = folder.with_extension("new");
        write(&partial).map_err(Error::at(&partial))?;
        fs::rename(&partial, &folder).map_err(Error::at(&folder))?;
    }
    Ok(folder.join("bin"))
}

fn write(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let content = StreamingDecoder::new(ARCHIVE).map_err(std::io::Error::other)?;
    tar::Archive::new(content).unpack(folder)
}
