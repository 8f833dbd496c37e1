//! The directories of a server.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::Error;
use crate::account::Account;

/// The maximum length of the path of a unix socket's folder, on every system.
const MAX_SOCKET_FOLDER_LENGTH: usize = 80;

/// The directories of one server, and the account that owns them.
#[derive(Clone, Debug)]
pub(crate) struct Directories {
    /// The directory of cluster, log and unpacked programs.
    pub(crate) home: PathBuf,
    /// The directory of the socket.
    pub(crate) socket: PathBuf,
    /// The account that owns them and runs the server.
    pub(crate) account: Account,
}

impl Directories {
    /// The directories of a server in `folder`, which exists and is an absolute path.
    ///
    /// A private directory below `/var/tmp` replaces a folder that the account of the server cannot access, such as one below
    /// `/root`, and a path that is too long for a socket.
    pub(crate) fn of(folder: &Path, account: Account) -> Directories {
        let parent = folder.parent().unwrap_or(folder);
        let fallback = fallback(folder);
        let home = if account.can_access(parent) { folder.to_owned() } else { fallback.clone() };
        let socket = home.join("socket");
        let fits = socket.as_os_str().len() <= MAX_SOCKET_FOLDER_LENGTH;
        Directories { home, socket: if fits { socket } else { fallback.join("socket") }, account }
    }

    /// The existing clusters, of any version.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = fs::read_dir(&self.home).into_iter().flatten().flatten();
        // The folder of a partial cluster has an extension.
        let complete = |path: &PathBuf| path.extension().is_none() && path.join("PG_VERSION").exists();
        entries.map(|entry| entry.path()).filter(complete)
    }

    /// Removes the directories with their content.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        for folder in [self.socket.parent().unwrap_or(&self.home), &self.home] {
            match fs::remove_dir_all(folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::at(folder)(e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates the directories, private to the account.
    pub(crate) fn create(&self) -> Result<(), Error> {
        self.create_one(&self.home)?;
        self.create_one(self.socket.parent().unwrap_or(&self.home))?;
        self.create_one(&self.socket)
    }

    /// Creates `folder`, or checks that no other account owns it, and makes the account its owner.
    fn create_one(&self, folder: &Path) -> Result<(), Error> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(Error::at(folder)(e)),
            _ => self.check(folder)?,
        }
        self.account.chown(folder).map_err(Error::at(folder))
    }

    /// Everyone can write to `/var/tmp`: an existing folder may be an attack.
    fn check(&self, folder: &Path) -> Result<(), Error> {
        let metadata = fs::symlink_metadata(folder).map_err(Error::at(folder))?;
        let ours = [self.account, Account::current()].iter().any(|account| account.uid == metadata.uid());
        if metadata.is_dir() && ours { Ok(()) } else { Err(Error::NotOurs(folder.to_owned())) }
    }
}

/// A folder with a short path that every account can access; the same for the same `folder`.
fn fallback(folder: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, folder.as_os_str().as_encoded_bytes());
    Path::new("/var/tmp").join(format!("ebbflow-{}", name.simple()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_accessible_folder_is_used() {
        let directories = Directories::of(Path::new("/usr/ebb"), Account::for_postgres());
        assert_eq!(directories.home, Path::new("/usr/ebb"));
        assert_eq!(directories.socket, Path::new("/usr/ebb/socket"));
    }

    #[test]
    fn an_inaccessible_folder_is_replaced_by_a_private_one() {
        let private = Permissions::from_mode(0o700);
        let parent = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let stranger = Account { uid: 54_321, gid: 54_321 };
        let directories = Directories::of(&parent.path().join("ebb"), stranger);
        assert!(directories.home.starts_with("/var/tmp"), "{}", directories.home.display());
    }

    #[test]
    fn a_path_too_long_for_a_socket_moves_the_socket_only() {
        let long = Path::new("/usr").join("l".repeat(100));
        let directories = Directories::of(&long, Account::current());
        assert_eq!(directories.home, long);
        assert!(directories.socket.as_os_str().len() <= MAX_SOCKET_FOLDER_LENGTH);
    }

    #[test]
    fn two_folders_do_not_share_a_replacement() {
        assert_ne!(fallback(Path::new("/a")), fallback(Path::new("/b")));
    }
}
