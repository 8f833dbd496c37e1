//! The account that runs the server.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{getegid, geteuid};

/// A user of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The account of this process.
    pub(crate) fn current() -> Account {
        Account { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// An account that may run Postgres: this one, or for root, which Postgres refuses, `postgres` or else `nobody`.
    pub(crate) fn for_postgres() -> Account {
        if !geteuid().is_root() {
            return Account::current();
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let nobody = Account { uid: 65534, gid: 65534 };
        ["postgres", "nobody"].iter().find_map(|name| find(&users, name)).unwrap_or(nobody)
    }

    /// Makes `command` run as this account.
    pub(crate) fn run(self, command: &mut Command) {
        if self != Account::current() {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Makes this account the owner of `path`; only root can and must do so.
    pub(crate) fn chown(self, path: &Path) -> std::io::Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
    }

    /// Whether this account can access files in `folder`.
    pub(crate) fn can_access(self, folder: &Path) -> bool {
        self == Account::current() || folder.ancestors().all(|ancestor| self.can_enter(ancestor))
    }

    fn can_enter(self, folder: &Path) -> bool {
        let Ok(metadata) = folder.metadata() else { return false };
        let permission = match metadata {
            _ if metadata.uid() == self.uid => 0o100,
            _ if metadata.gid() == self.gid => 0o010,
            _ => 0o001,
        };
        metadata.mode() & permission != 0
    }
}

/// Looks `name` up in the lines of `/etc/passwd`.
fn find(users: &str, name: &str) -> Option<Account> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map_while(|field| field.parse().ok());
    Some(Account { uid: numbers.next()?, gid: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:104:PostgreSQL:/var:/bin/bash\n";

    #[test]
    fn a_user_is_found_by_its_full_name() {
        assert_eq!(find(USERS, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find(USERS, "post"), None);
    }

    #[test]
    fn another_user_cannot_access_a_private_folder() {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let stranger = Account { uid: 54_321, gid: 54_321 };
        assert!(!stranger.can_access(folder.path()));
        assert!(stranger.can_access(Path::new("/usr")));
        assert!(Account::current().can_access(folder.path()));
    }
}
