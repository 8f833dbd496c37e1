//! Chooses the Postgres that serves a folder.

use std::path::Path;

use crate::directories::Directories;
use crate::installed::installed;
use crate::{Error, Kind};

/// Which Postgres to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preference {
    /// The one whose data is in the folder, else an installed one, else the one compiled in.
    #[default]
    Any,
    /// A Postgres that is installed on this machine.
    Installed,
    /// The one compiled in.
    Compiled,
}

/// Chooses a Postgres for `folder`, and its directories.
pub(crate) fn choose(folder: &Path, preference: Preference) -> Result<(Kind, Directories), Error> {
    let (kinds, missing) = match preference {
        Preference::Any => (installed().into_iter().chain(Kind::compiled()).collect(), "Postgres"),
        Preference::Installed => (installed(), "installed Postgres"),
        Preference::Compiled => (Kind::compiled().into_iter().collect(), "compiled-in Postgres"),
    };
    let mut candidates: Vec<(Kind, Directories)> =
        kinds.into_iter().map(|kind| placed(kind, folder)).collect();
    let has_data = |(kind, directories): &(Kind, Directories)| directories.home.join(kind.cluster()).exists();
    let with_data = candidates.iter().position(has_data);
    if with_data.is_none() && preference == Preference::Any {
        check_no_other_version(&candidates)?;
    }
    if candidates.is_empty() {
        return Err(Error::NotFound(missing));
    }
    Ok(candidates.swap_remove(with_data.unwrap_or(0)))
}

fn placed(kind: Kind, folder: &Path) -> (Kind, Directories) {
    let directories = Directories::of(folder, kind.account());
    (kind, directories)
}

/// Rejects a folder with data of a version that is no longer installed: in a new, empty cluster the data would seem lost.
fn check_no_other_version(candidates: &[(Kind, Directories)]) -> Result<(), Error> {
    let found = candidates.iter().find_map(|(_, directories)| directories.clusters().next());
    found.map_or(Ok(()), |cluster| Err(Error::OtherVersion(cluster)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn with_cluster(name: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("PG_VERSION"), "").unwrap();
        folder
    }

    #[test]
    fn data_of_another_version_is_not_ignored() {
        let folder = with_cluster("postgres-3");
        let refused = choose(folder.path(), Preference::Any).unwrap_err();
        assert!(matches!(refused, Error::OtherVersion(path) if path.ends_with("postgres-3")));
    }

    #[cfg(compiled_in)]
    #[test]
    fn the_data_in_the_folder_decides_which_postgres_serves_it() {
        let compiled = Kind::compiled().unwrap();
        let folder = with_cluster(&compiled.cluster());
        assert_eq!(choose(folder.path(), Preference::Any).unwrap().0, compiled);
    }
}
