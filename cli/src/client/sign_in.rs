//! Signs in with a browser: the console redirects it back to this machine with a code for a token.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long to wait for the browser.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The maximum length of a request line.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nSigned in: you can close this page.\n";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n";

/// Prints where to sign in, waits for the browser's redirect, and fetches the token.
pub async fn sign_in(url: &str) -> Result<String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on this machine")?;
    let (state, verifier) = (auth::random(), auth::random());
    let mut page =
        Url::parse(url).with_context(|| format!("`{url}` is not a valid address"))?.join("/sign-in/cli")?;
    page.query_pairs_mut()
        .append_pair("port", &listener.local_addr()?.port().to_string())
        .append_pair("state", &state)
        .append_pair("challenge", &auth::challenge(&verifier));
    eprintln!("Open this page in a browser on this machine and allow access:\n\n  {page}\n");
    let code = tokio::time::timeout(SIGN_IN_TIMEOUT, wait_for_code(&listener, &state));
    let code = code.await.context("timed out: no sign-in within five minutes")??;
    fetch(url, &code, &verifier).await
}

/// Waits for the browser; other requests get a 404.
async fn wait_for_code(listener: &TcpListener, state: &str) -> Result<String> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let fields = read_query(&mut stream).await.unwrap_or_default();
        match (fields.get("state"), fields.get("code")) {
            (Some(sent), Some(code)) if auth::constant_time_eq(sent, state) => {
                stream.write_all(DONE.as_bytes()).await?;
                stream.shutdown().await?;
                return Ok(code.clone());
            }
            _ => drop(stream.write_all(NOT_FOUND.as_bytes()).await),
        }
    }
}

/// The query of a request's first line.
async fn read_query(stream: &mut TcpStream) -> Option<BTreeMap<String, String>> {
    let mut read = Vec::new();
    while !read.contains(&b'\n') && read.len() < MAX_REQUEST_BYTES {
        let mut part = [0; 1024];
        match stream.read(&mut part).await.ok()? {
            0 => break,
            count => read.extend_from_slice(&part[..count]),
        }
    }
    let line = String::from_utf8(read).ok()?;
    let path = line.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(path).ok()?;
    Some(url.query_pairs().into_owned().collect())
}

async fn fetch(url: &str, code: &str, verifier: &str) -> Result<String> {
    let page = Url::parse(url)?.join("/sign-in/cli/token")?;
    let client = reqwest::Client::builder().timeout(Duration::from_secs(30));
    let local = matches!(page.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let client = if local { client.no_proxy() } else { client };
    let body = json!({"code": code, "verifier": verifier});
    let response =
        client.build()?.post(page).json(&body).send().await.context("the console does not respond")?;
    let status = response.status();
    let body: Value = response.json().await.unwrap_or_default();
    match body["token"].as_str() {
        Some(token) if status.is_success() => Ok(token.to_owned()),
        _ => bail!("the console returned no token: {}", body["message"].as_str().unwrap_or(status.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(port: u16, line: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(format!("{line}\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_a_redirect_with_the_right_state_has_an_accepted_code() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let waiting = tokio::spawn(async move { wait_for_code(&listener, "right").await });
        for odd in ["GET /?state=wrong&code=evil HTTP/1.1", "GET /favicon.ico HTTP/1.1", "nonsense"] {
            assert!(request(port, odd).await.starts_with("HTTP/1.1 404"), "{odd}");
        }
        assert!(request(port, "GET /?state=right&code=a.b HTTP/1.1").await.contains("Signed in"));
        assert_eq!(waiting.await.unwrap().unwrap(), "a.b");
    }
}
