//! Which of the Postgres at hand serves a folder.

use std::path::Path;

use crate::installed::installed;
use crate::place::Place;
use crate::{Error, Kind};

/// Which Postgres is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preference {
    /// The one whose data is in the folder; else an installed one; else the one compiled in.
    #[default]
    Any,
    /// An installed one.
    Installed,
    /// The one compiled in.
    Compiled,
}

/// Picks a Postgres for `folder`, and the place where it works.
pub(crate) fn choose(folder: &Path, preference: Preference) -> Result<(Kind, Place), Error> {
    let (kinds, missing) = match preference {
        Preference::Any => (installed().into_iter().chain(Kind::compiled()).collect(), "Postgres"),
        Preference::Installed => (installed(), "installed Postgres"),
        Preference::Compiled => (Kind::compiled().into_iter().collect(), "compiled-in Postgres"),
    };
    let mut candidates: Vec<(Kind, Place)> = kinds.into_iter().map(|kind| placed(kind, folder)).collect();
    let at_home = candidates.iter().position(|(kind, place)| place.home.join(kind.cluster()).exists());
    if at_home.is_none() && preference == Preference::Any {
        refuse_strangers(&candidates)?;
    }
    if candidates.is_empty() {
        return Err(Error::NotFound(missing));
    }
    Ok(candidates.swap_remove(at_home.unwrap_or(0)))
}

fn placed(kind: Kind, folder: &Path) -> (Kind, Place) {
    let place = Place::of(folder, kind.account());
    (kind, place)
}

/// Data of a Postgres that is gone would look lost if another began an empty cluster beside it.
fn refuse_strangers(candidates: &[(Kind, Place)]) -> Result<(), Error> {
    let found = candidates.iter().find_map(|(_, place)| place.clusters().next());
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
    fn data_of_a_postgres_that_is_gone_is_not_passed_over() {
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
