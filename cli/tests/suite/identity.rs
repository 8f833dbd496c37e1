//! Tokens for programs, roles for people, and signing in.

use std::io::Write;
use std::process::Stdio;

use crate::project::{Dev, Project, printed};
use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;

const HELLO: &str = "{name: hello, tasks: [{name: a, type: noop}]}";

#[test]
fn a_token_is_created_used_stored_by_login_and_revoked() {
    let project = Project::new().with("hello", HELLO);
    let dev = project.dev();
    let token = project.ask(&["tokens", "create", "ci", "--role", "viewer"]).trim().to_owned();
    assert!(token.starts_with("ebb_") && token.lines().count() == 1, "{token}");
    let reads = project.run(&["runs", "--token", &token]);
    assert!(reads.status.success(), "{}", printed(&reads));
    project.assert_fails(&["trigger", "hello", "--token", &token], 3, "you have viewer:default");
    log_in(&project, &dev, &token);
    let list = project.ask_json(&["tokens", "list"]);
    assert!(!list.to_string().contains(&token));
    project.ask(&["tokens", "revoke", list[0]["id"].as_str().unwrap()]);
    project.assert_fails(&["runs", "--token", &token], 3, "revoked");
}

/// Stores the token for the URL of the `ebb dev`, and uses it without that folder's own token.
fn log_in(project: &Project, dev: &Dev, token: &str) {
    let mut login = project.command(&["login", "--url", &dev.url, "--with-token"]);
    let mut login =
        login.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    login.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
    let output = login.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let elsewhere = project.run(&["runs", "--data", "nowhere"]);
    assert!(elsewhere.status.success(), "{}", printed(&elsewhere));
}

#[test]
fn a_role_is_granted_listed_and_revoked() {
    let project = Project::new().with("hello", HELLO);
    let _dev = project.dev();
    let given = project.ask(&["grants", "add", "@example.com", "--role", "operator", "--in", "acme"]);
    assert_eq!(given, "@example.com has the role operator in acme\n");
    assert!(!project.ask(&["grants", "list"]).contains("@example.com"), "it belongs to another tenant");
    let list = project.ask_json(&["grants", "list", "--tenant", "acme"]);
    let id = list[0]["id"].as_str().unwrap();
    let gone = project.ask(&["grants", "remove", id, "--tenant", "acme"]);
    assert_eq!(gone, "@example.com no longer has the role operator in acme\n");
    let odd = project.run(&["grants", "add", "bob", "--role", "viewer"]);
    assert!(printed(&odd).contains("use an email address, @domain or group:NAME"), "{}", printed(&odd));
}

fn cookie(headers: &HeaderMap, name: &str) -> String {
    let set = headers.get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap());
    let found = set.filter_map(|text| text.split(';').next()).find(|pair| pair.starts_with(name));
    found.unwrap_or_else(|| panic!("no cookie {name} in {headers:?}")).to_owned()
}

#[tokio::test]
async fn one_click_signs_the_admin_in() {
    let project = Project::new().with("hello", HELLO);
    let dev = project.dev();
    let browser = reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
    let clicked = browser.get(format!("{}/sign-in/start?to=/", dev.url)).send().await.unwrap();
    let attempt = cookie(clicked.headers(), "ebb_sign_in");
    let provider = clicked.headers()[LOCATION].to_str().unwrap().to_owned();
    let back = browser.get(provider).send().await.unwrap().headers()[LOCATION].to_str().unwrap().to_owned();
    let home = browser.get(back).header(COOKIE, attempt).send().await.unwrap();
    let session = cookie(home.headers(), "ebb_session");
    assert_eq!(home.headers()[LOCATION], "/");
    let read =
        browser.get(format!("{}/api/v1/tokens", dev.url)).header(COOKIE, &session).send().await.unwrap();
    assert_eq!(read.status().as_u16(), 200, "the admin may see tokens");
    let page = browser.get(format!("{}/sign-in", dev.url)).header(COOKIE, &session).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("You are admin@ebbflow.local"));
}
