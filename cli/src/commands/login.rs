//! `ebb login`: stores the token of a server for the other commands.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::{Login, Shared};
use crate::client::{Client, Credentials, Server, sign_in};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: &Login) -> Result<ExitCode> {
    let Some(url) = shared.url.clone() else {
        bail!("name the server: ebb login --url https://console.example.com");
    };
    let token = match arguments.with_token {
        true => read_token()?,
        false => sign_in(&url).await?,
    };
    // Store only a token that the server accepts.
    let server = Server { url: url.clone(), token: token.clone(), tenant: shared.tenant.clone() };
    let _: Value = Client::new(server)?.get(&["runs"], &[("limit", "1".to_owned())]).await?;
    let path = Credentials::path().context("there is no home folder to store the token in")?;
    let mut credentials = Credentials::read(&path);
    credentials.insert(&url, &token);
    credentials.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    output::line(format!("Signed in to {url}; the token is stored in {}.", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn read_token() -> Result<String> {
    if io::stdin().is_terminal() {
        eprintln!("Paste the token, then press Ctrl-D:");
    }
    let mut token = String::new();
    io::stdin().take(64 * 1024).read_to_string(&mut token).context("cannot read the token")?;
    let token = token.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        bail!("standard input has no token");
    }
    Ok(token.to_owned())
}
