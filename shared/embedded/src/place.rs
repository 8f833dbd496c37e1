//! Where a server keeps its things.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::Error;
use crate::account::Account;

/// The longest folder path for a unix socket on every system.
const MAX_SOCKET_FOLDER_LENGTH: usize = 80;

/// The folders of one server, and the account that they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where cluster, log and unpacked programs lie.
    pub(crate) home: PathBuf,
    /// Where the socket lies.
    pub(crate) socket: PathBuf,
    /// Who owns them and runs the server.
    pub(crate) account: Account,
}

impl Place {
    /// The folders for a server that is asked for in `folder`, which exists and is an absolute path.
    ///
    /// Root may ask for a folder that the account of the server cannot reach, such as one below `/root`;
    /// a path may be too long for a socket. A private folder below `/var/tmp` serves then.
    pub(crate) fn of(folder: &Path, account: Account) -> Place {
        let parent = folder.parent().unwrap_or(folder);
        let aside = aside(folder);
        let home = if account.reaches(parent) { folder.to_owned() } else { aside.clone() };
        let socket = home.join("socket");
        let fits = socket.as_os_str().len() <= MAX_SOCKET_FOLDER_LENGTH;
        Place { home, socket: if fits { socket } else { aside.join("socket") }, account }
    }

    /// The clusters that are there, of whatever version.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = fs::read_dir(&self.home).into_iter().flatten().flatten();
        // One that is half made has an extension.
        let whole = |path: &PathBuf| path.extension().is_none() && path.join("PG_VERSION").exists();
        entries.map(|entry| entry.path()).filter(whole)
    }

    /// Removes the folders and all that is in them.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        for folder in [self.socket.parent().unwrap_or(&self.home), &self.home] {
            match fs::remove_dir_all(folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::at(folder)(e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the folders, private to the account.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.claim(&self.home)?;
        self.claim(self.socket.parent().unwrap_or(&self.home))?;
        self.claim(&self.socket)
    }

    /// Creates `folder`, or checks that no other account owns it, and gives it to the account.
    fn claim(&self, folder: &Path) -> Result<(), Error> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(Error::at(folder)(e)),
            _ => self.check(folder)?,
        }
        self.account.own(folder).map_err(Error::at(folder))
    }

    /// `/var/tmp` is writable by all: an existing folder may be a trap.
    fn check(&self, folder: &Path) -> Result<(), Error> {
        let metadata = fs::symlink_metadata(folder).map_err(Error::at(folder))?;
        let ours = [self.account, Account::current()].iter().any(|account| account.uid == metadata.uid());
        if metadata.is_dir() && ours { Ok(()) } else { Err(Error::NotOurs(folder.to_owned())) }
    }
}

/// A folder with a short name that every account reaches; always the same for the same `folder`.
fn aside(folder: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, folder.as_os_str().as_encoded_bytes());
    Path::new("/var/tmp").join(format!("ebbflow-{}", name.simple()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_in_reach_is_used_itself() {
        let place = Place::of(Path::new("/usr/ebb"), Account::for_postgres());
        assert_eq!(place.home, Path::new("/usr/ebb"));
        assert_eq!(place.socket, Path::new("/usr/ebb/socket"));
    }

    #[test]
    fn a_folder_out_of_reach_is_replaced_by_a_private_one() {
        let private = Permissions::from_mode(0o700);
        let parent = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let stranger = Account { uid: 54_321, gid: 54_321 };
        let place = Place::of(&parent.path().join("ebb"), stranger);
        assert!(place.home.starts_with("/var/tmp"), "{}", place.home.display());
    }

    #[test]
    fn a_path_too_long_for_a_socket_moves_the_socket_only() {
        let long = Path::new("/usr").join("l".repeat(100));
        let place = Place::of(&long, Account::current());
        assert_eq!(place.home, long);
        assert!(place.socket.as_os_str().len() <= MAX_SOCKET_FOLDER_LENGTH);
    }

    #[test]
    fn two_folders_do_not_share_a_replacement() {
        assert_ne!(aside(Path::new("/a")), aside(Path::new("/b")));
    }
}
