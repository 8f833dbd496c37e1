//! The kinds of Postgres: installed, or compiled in.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::account::Account;

/// The Postgres that serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A Postgres that is installed on the machine.
    Installed {
        /// Its version, such as `15.14`.
        version: String,
        /// The folder of its programs.
        bin: PathBuf,
    },
    /// The Postgres that is compiled into this program.
    Compiled {
        /// Its version, such as `17.5`.
        version: String,
    },
}

impl Kind {
    /// The compiled-in Postgres, if this platform and feature set have one.
    pub(crate) fn compiled() -> Option<Kind> {
        #[cfg(compiled_in)]
        return Some(Kind::Compiled { version: crate::archive::VERSION.to_owned() });
        #[cfg(not(compiled_in))]
        None
    }

    /// The name of its cluster's folder. Each major version has its own, since it cannot read the data of another.
    pub(crate) fn cluster(&self) -> String {
        match self {
            Kind::Installed { version, .. } => format!("postgres-{}", major(version)),
            Kind::Compiled { version } => format!("compiled-{}", major(version)),
        }
    }

    /// The account that runs it: an installed Postgres refuses to run as root, the compiled-in one does not.
    pub(crate) fn account(&self) -> Account {
        match self {
            Kind::Installed { .. } => Account::for_postgres(),
            Kind::Compiled { .. } => Account::current(),
        }
    }

    /// The folder of its programs, unpacked into `home` if necessary.
    pub(crate) fn programs(&self, home: &Path) -> Result<PathBuf, Error> {
        match self {
            Kind::Installed { bin, .. } => Ok(bin.clone()),
            #[cfg(compiled_in)]
            Kind::Compiled { .. } => crate::archive::unpack(home),
            #[cfg(not(compiled_in))]
            Kind::Compiled { .. } => {
                let _ = home;
                Err(Error::NotFound("compiled-in Postgres"))
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kind::Installed { version, bin } => write!(f, "PostgreSQL {version} in {}", bin.display()),
            Kind::Compiled { version } => write!(f, "PostgreSQL {version}, compiled in"),
        }
    }
}

/// The part of a version before the first dot.
pub(crate) fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}
