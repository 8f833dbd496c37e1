//! Tokens for programs, roles for people, and signing in.

use std::io::Write;
use std::process::Stdio;

use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::Value;

use crate::ebb::{Dev, Place, said};

const HELLO: &str = "{name: hello, tasks: [{name: a, type: noop}]}";

fn ask(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_token_is_made_used_kept_by_login_and_revoked() {
    let place = Place::new().with("hello", HELLO);
    let dev = place.dev();
    let token = ask(&place, &["tokens", "create", "ci", "--role", "viewer"]);
    assert!(token.starts_with("ebb_") && token.lines().count() == 1, "{token}");
    let reads = place.run(&["runs", "--token", &token]);
    assert!(reads.status.success(), "{}", said(&reads));
    let starts = place.run(&["trigger", "hello", "--token", &token]);
    assert_eq!(starts.status.code(), Some(3));
    assert!(said(&starts).contains("you have viewer:default"), "{}", said(&starts));
    logs_in(&place, &dev, &token);
    let list: Value = serde_json::from_str(&ask(&place, &["tokens", "list", "--json"])).unwrap();
    assert!(!list.to_string().contains(&token));
    ask(&place, &["tokens", "revoke", list[0]["id"].as_str().unwrap()]);
    let refused = place.run(&["runs", "--token", &token]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(said(&refused).contains("revoked"), "{}", said(&refused));
}

/// Keeps the token for the address of the `ebb dev`, and uses it from a folder that knows of none.
fn logs_in(place: &Place, dev: &Dev, token: &str) {
    let mut login = place.command(&["login", "--url", &dev.url, "--with-token"]);
    let mut login =
        login.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    login.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
    let output = login.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let elsewhere = place.run(&["runs", "--data", "nowhere"]);
    assert!(elsewhere.status.success(), "{}", said(&elsewhere));
}

#[test]
fn a_role_is_given_listed_and_taken_back() {
    let place = Place::new().with("hello", HELLO);
    let _dev = place.dev();
    let given = ask(&place, &["grants", "add", "@example.com", "--role", "operator", "--in", "acme"]);
    assert_eq!(given, "@example.com has the role operator in acme");
    assert!(!ask(&place, &["grants", "list"]).contains("@example.com"), "it is another tenant's");
    let list = ask(&place, &["grants", "list", "--tenant", "acme", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    let gone = ask(&place, &["grants", "remove", id, "--tenant", "acme"]);
    assert_eq!(gone, "@example.com no longer has the role operator in acme");
    let odd = place.run(&["grants", "add", "bob", "--role", "viewer"]);
    assert!(said(&odd).contains("use an email address, @domain or group:NAME"), "{}", said(&odd));
}

fn cookie(headers: &HeaderMap, name: &str) -> String {
    let set = headers.get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap());
    let found = set.filter_map(|text| text.split(';').next()).find(|pair| pair.starts_with(name));
    found.unwrap_or_else(|| panic!("no cookie {name} in {headers:?}")).to_owned()
}

#[tokio::test]
async fn one_click_signs_the_admin_in() {
    let place = Place::new().with("hello", HELLO);
    let dev = place.dev();
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
