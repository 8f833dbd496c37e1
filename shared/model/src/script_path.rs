//! The paths of scripts, which stay inside the folder for scripts.

use std::fmt;
use std::path::{Component, Path};

/// The path of a script, relative to the folder for scripts: never absolute, and without `..`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptPath(String);

/// A path that would leave the folder for scripts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{}` is not a script's path: it must be relative to the folder for scripts, without `..`", .0.escape_debug()
)]
pub struct InvalidScriptPath(String);

impl ScriptPath {
    /// The paths that [`ScriptPath::new`] accepts, as a regular expression for published schemas.
    pub const PATTERN: &str = r"^((\.{3,}|[^/\\]*[^./\\][^/\\]*)/+|\./+)*(\.{3,}|[^/\\]*[^./\\][^/\\]*)$";

    /// The path, if it stays inside the folder. Check a path after its templates are rendered.
    pub fn new(path: &str) -> Result<Self, InvalidScriptPath> {
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let names_file = !path.is_empty() && !path.ends_with('/') && Path::new(path).file_name().is_some();
        match names_file && !path.contains(['\0', '\\']) && Path::new(path).components().all(is_inside) {
            true => Ok(Self(path.to_owned())),
            false => Err(InvalidScriptPath(path.chars().take(200).collect())),
        }
    }

    /// The path, relative to the folder for scripts.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for ScriptPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_accepted() {
        for path in ["load.sh", "etl/load.sh", "./load.sh", "a..b/c...sh", "with space.py"] {
            assert_eq!(ScriptPath::new(path).map(|path| path.to_string()), Ok(path.to_owned()));
        }
    }

    #[test]
    fn paths_that_leave_the_folder_are_rejected() {
        for path in
            ["", "/etc/passwd", "../x.sh", "a/../../x.sh", "a/..", "..", ".", "./", "a/", "a\0b", "..\\x"]
        {
            assert!(ScriptPath::new(path).is_err(), "{path:?}");
        }
    }
}
