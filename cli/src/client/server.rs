//! Which server to use, and with which token: as configured, or of the `ebb dev` of the data folder.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Credentials, Error, Result};
use crate::args::Shared;

/// A server, and the token to send to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// The address of the server.
    pub url: String,
    /// The token to send.
    pub token: String,
    /// The tenant, if the caller has roles in several.
    pub tenant: Option<String>,
}

/// The file that `ebb dev` writes to its data folder for other commands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DevFile {
    /// The address of `ebb dev`.
    pub url: String,
    /// The token of the admin.
    pub token: String,
}

impl DevFile {
    /// The file's name in the data folder.
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
                "{} was not written by `ebb dev` ({error}): start it again",
                path.display()
            ))
        })
    }
}

impl Server {
    /// The server that the command line, the environment, the data folder or an earlier `ebb login` names.
    pub fn find(shared: &Shared) -> Result<Self> {
        let credentials = Credentials::path().map(|path| Credentials::read(&path)).unwrap_or_default();
        Self::find_with(shared, &credentials)
    }

    fn find_with(shared: &Shared, credentials: &Credentials) -> Result<Self> {
        let tenant = shared.tenant.clone();
        let server = |url: String, token: String| Self { url, token, tenant: tenant.clone() };
        // A token from a file or a secret may end with the file's line, and no header can.
        let token = shared.token.as_deref().map(|token| token.trim().to_owned());
        match (shared.url.clone(), token) {
            (Some(url), Some(token)) => Ok(server(url, token)),
            (Some(url), None) => match (DevFile::read(&shared.data), credentials.token(&url)) {
                // The token of one server is never sent to another.
                (Ok(dev), _) if same(&dev.url, &url) => Ok(server(url, dev.token)),
                (_, Some(token)) => Ok(server(url, token.clone())),
                _ => Err(Error::Settings(format!(
                    "no token for {url}: run `ebb login`, set EBB_TOKEN or use --token"
                ))),
            },
            (None, token) => match (DevFile::read(&shared.data), &credentials.last) {
                (Ok(dev), _) => Ok(server(dev.url, token.unwrap_or(dev.token))),
                (Err(_), Some(url)) if token.is_some() || credentials.token(url).is_some() => {
                    let stored = credentials.token(url).cloned().unwrap_or_default();
                    Ok(server(url.clone(), token.unwrap_or(stored)))
                }
                (Err(error), _) => Err(error),
            },
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
        let (url, token) = (url.map(Into::into), token.map(Into::into));
        Shared { url, token, tenant: None, data: data.into(), json: false }
    }

    fn data_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DevFile::NAME), r#"{"url": "http://127.0.0.1:8080", "token": "t"}"#)
            .unwrap();
        folder
    }

    /// Finds the server as if no credentials were stored.
    fn find(shared: &Shared) -> Result<Server> {
        Server::find_with(shared, &Credentials::default())
    }

    #[test]
    fn a_token_of_a_file_is_used_without_its_line_break() {
        let nowhere = Path::new("/nowhere");
        let server = find(&shared(nowhere, Some("https://far.away"), Some(" ebb_secret\r\n"))).unwrap();
        assert_eq!(server.token, "ebb_secret");
    }

    #[test]
    fn stored_credentials_are_used_without_a_local_server_and_only_for_their_address() {
        let mut stored = Credentials::default();
        stored.insert("https://far.away", "stored");
        let nowhere = Path::new("/nowhere");
        let server = Server::find_with(&shared(nowhere, None, None), &stored).unwrap();
        assert_eq!((server.url.as_str(), server.token.as_str()), ("https://far.away", "stored"));
        let named = Server::find_with(&shared(nowhere, Some("https://far.away/"), None), &stored).unwrap();
        assert_eq!(named.token, "stored");
        assert!(Server::find_with(&shared(nowhere, Some("https://else.where"), None), &stored).is_err());
        let data = data_folder();
        let local = Server::find_with(&shared(data.path(), None, None), &stored).unwrap();
        assert_eq!(local.token, "t");
    }

    #[test]
    fn the_local_server_is_the_default() {
        let data = data_folder();
        let server = find(&shared(data.path(), None, None)).unwrap();
        assert_eq!((server.url.as_str(), server.token.as_str()), ("http://127.0.0.1:8080", "t"));
    }

    #[test]
    fn the_local_token_is_not_sent_elsewhere() {
        let data = data_folder();
        assert!(find(&shared(data.path(), Some("https://else.where"), None)).is_err());
        assert_eq!(find(&shared(data.path(), Some("http://127.0.0.1:8080/"), None)).unwrap().token, "t");
    }

    #[test]
    fn the_error_of_a_missing_file_says_what_to_do() {
        let error = find(&shared(Path::new("/nowhere"), None, None)).unwrap_err().to_string();
        assert!(error.contains("ebb dev") && error.contains("EBB_URL"), "{error}");
    }
}
