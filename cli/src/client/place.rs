//! Where an Ebbflow is and with which token: as told, or as the `ebb dev` of the data folder left it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Error, Result};
use crate::args::Shared;

/// Where an Ebbflow is, and the token to send to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its address.
    pub url: String,
    /// The token.
    pub token: String,
}

/// What `ebb dev` leaves in its data folder for other commands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DevFile {
    /// Where it listens.
    pub url: String,
    /// A token of its admin.
    pub token: String,
}

impl DevFile {
    /// Its name within the data folder.
    pub const NAME: &str = "dev.json";

    /// Reads it from a data folder.
    pub fn read(data: &Path) -> Result<Self> {
        let path = data.join(Self::NAME);
        let text = fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            Error::Settings(format!(
                "cannot read {path} ({error}): start `ebb dev` here, name its data folder with --data, or set EBB_URL and EBB_TOKEN"
            ))
        })?;
        serde_json::from_str(&text).map_err(|error| {
            Error::Settings(format!(
                "{} is not what `ebb dev` writes ({error}): start it again",
                path.display()
            ))
        })
    }
}

impl Place {
    /// The place that the command line, the environment or the data folder names.
    pub fn find(shared: &Shared) -> Result<Self> {
        match (shared.url.clone(), shared.token.clone()) {
            (Some(url), Some(token)) => Ok(Self { url, token }),
            (Some(url), None) => match DevFile::read(&shared.data) {
                // The token of one Ebbflow is never sent to another.
                Ok(dev) if same(&dev.url, &url) => Ok(Self { url, token: dev.token }),
                _ => Err(Error::Settings(format!("no token for {url}: set EBB_TOKEN or use --token"))),
            },
            (None, token) => {
                let dev = DevFile::read(&shared.data)?;
                Ok(Self { url: dev.url, token: token.unwrap_or(dev.token) })
            }
        }
    }
}

fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(data: &Path, url: Option<&str>, token: Option<&str>) -> Shared {
        Shared { url: url.map(Into::into), token: token.map(Into::into), data: data.into(), json: false }
    }

    fn data_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DevFile::NAME), r#"{"url": "http://127.0.0.1:8080", "token": "t"}"#)
            .unwrap();
        folder
    }

    #[test]
    fn without_settings_the_local_one_is_meant() {
        let data = data_folder();
        let place = Place::find(&shared(data.path(), None, None)).unwrap();
        assert_eq!((place.url.as_str(), place.token.as_str()), ("http://127.0.0.1:8080", "t"));
    }

    #[test]
    fn the_local_token_is_not_sent_elsewhere() {
        let data = data_folder();
        assert!(Place::find(&shared(data.path(), Some("https://else.where"), None)).is_err());
        assert_eq!(
            Place::find(&shared(data.path(), Some("http://127.0.0.1:8080/"), None)).unwrap().token,
            "t"
        );
    }

    #[test]
    fn a_missing_file_says_what_to_do() {
        let error = Place::find(&shared(Path::new("/nowhere"), None, None)).unwrap_err().to_string();
        assert!(error.contains("ebb dev") && error.contains("EBB_URL"), "{error}");
    }
}
