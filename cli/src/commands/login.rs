//! `ebb login`: keeps a token for an address, so that the other commands find it.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::{Login, Shared};
use crate::client::{Client, Credentials, Place, sign_in};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: &Login) -> Result<ExitCode> {
    let Some(url) = shared.url.clone() else {
        bail!("say where to sign in: ebb login --url https://console.example.com");
    };
    let token = match arguments.with_token {
        true => read_token()?,
        false => sign_in(&url).await?,
    };
    // A token that is not believed is not kept.
    let place = Place { url: url.clone(), token: token.clone(), tenant: shared.tenant.clone() };
    let _: Value = Client::new(place)?.get(&["runs"], &[("limit", "1".to_owned())]).await?;
    let path = Credentials::path().context("there is no home folder to keep the token in")?;
    let mut credentials = Credentials::read(&path);
    credentials.keep(&url, &token);
    credentials.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    output::line(format!("Signed in to {url}; the token is kept in {}.", path.display()))?;
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
        bail!("there is no token on standard input");
    }
    Ok(token.to_owned())
}
