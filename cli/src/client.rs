//! The HTTP client: address, token, requests and errors.

mod credentials;
mod follow;
mod server;
mod sign_in;

use std::time::Duration;

use api::page::{MAX_LIMIT, Page};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use credentials::Credentials;
pub use follow::Follower;
pub use server::{DevFile, Server};
pub use sign_in::sign_in;

/// Longer than the server's own timeout of half a minute.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server or the token is not configured.
    #[error("{0}")]
    Settings(String),
    /// The server cannot be reached.
    #[error("no response from {url}: is `ebb dev` running? ({why})")]
    Unreachable {
        /// The address of the server.
        url: String,
        /// What the network layer reports.
        why: String,
    },
    /// The server rejected the request.
    #[error("{message}")]
    Rejected {
        /// The status of the response.
        status: u16,
        /// The `error_code` of the response.
        code: String,
        /// The message for people.
        message: String,
        /// The `details` of the response, for programs.
        details: Value,
    },
    /// The server is not Ebbflow.
    #[error("the server at {url} is not Ebbflow: {why}")]
    NotEbbflow {
        /// The address of the server.
        url: String,
        /// What is wrong with the response.
        why: String,
    },
}

/// A result of the client.
pub type Result<T> = std::result::Result<T, Error>;

/// The body of an error response.
#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error_code: String,
    message: String,
    #[serde(default)]
    details: Value,
}

/// A client of one server.
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: String,
    tenant: Option<String>,
}

impl Client {
    /// A client of the server.
    pub fn new(server: Server) -> Result<Self> {
        Self::with_timeout(server, REQUEST_TIMEOUT)
    }

    /// A client that waits this long for a response.
    pub fn with_timeout(server: Server, timeout: Duration) -> Result<Self> {
        let bad = |why: String| Error::Settings(format!("`{}` is not a valid address: {why}", server.url));
        let base = Url::parse(&server.url).map_err(|error| bad(error.to_string()))?;
        if base.cannot_be_a_base() || !base.scheme().starts_with("http") {
            return Err(bad("expected http://host:port or https://host".into()));
        }
        let mut http = reqwest::Client::builder().timeout(timeout);
        if matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            // A proxy would resolve it on its own machine.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| bad(error.to_string()))?;
        Ok(Self { http, base, token: server.token, tenant: server.tenant })
    }

    /// Sends a GET request.
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, String)]) -> Result<T> {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send(self.http.request(Method::GET, url)).await
    }

    /// Sends a POST request.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        headers: HeaderMap,
        body: &impl Serialize,
    ) -> Result<T> {
        self.send(self.http.request(Method::POST, self.url(path)).headers(headers).json(body)).await
    }

    /// Sends a DELETE request.
    pub async fn delete<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        self.send(self.http.request(Method::DELETE, self.url(path))).await
    }

    /// All items of a list.
    pub async fn all<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Vec<T>> {
        Follower::new(path, &[]).new_items(self).await
    }

    /// One page of a list.
    async fn page<T: DeserializeOwned>(
        &self,
        path: &[&str],
        mut query: Vec<(&str, String)>,
    ) -> Result<Page<T>> {
        query.push(("limit", MAX_LIMIT.to_string()));
        self.get(path, &query).await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("checked at the start")
            .pop_if_empty()
            .extend(["api", "v1"])
            .extend(path);
        url
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let mut request = request.bearer_auth(&self.token);
        if let Some(tenant) = &self.tenant {
            request = request.header("x-ebb-tenant", tenant);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| self.not_ebbflow(error.to_string()));
        }
        match serde_json::from_slice(&body) {
            Ok(ErrorBody { error_code: code, message, details }) => {
                Err(Error::Rejected { status: status.as_u16(), code, message, details })
            }
            Err(_) => Err(self.not_ebbflow(format!("it returned {status}"))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        Error::Unreachable { url: self.base.to_string(), why: root_of(error) }
    }

    fn not_ebbflow(&self, why: String) -> Error {
        Error::NotEbbflow { url: self.base.to_string(), why }
    }
}

/// The root cause is the most specific: "Connection refused" instead of "error sending request".
fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
