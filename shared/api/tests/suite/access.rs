//! Who may what: every endpoint, for every role, in one's own tenant and in another's, with every kind of bad token.
//!
//! The rows are written by hand, as a second opinion on the table of endpoints. An endpoint without a row fails.

mod authors;
mod partners;
mod people;
mod rates;
mod rows;
mod streams;
mod tokens;
mod workflows;

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use ebbflow_api::endpoints;
use serde_json::Value;

use people::{Office, ROLES};
use rows::{ENDPOINTS, Row, Who};

use crate::world::bad_tokens;

/// Whether a role may use an endpoint, as the rows say.
fn expected(row: &Row, role: &str, everywhere: bool) -> bool {
    let roles: &[&str] = match row.who {
        Who::Followers => &["viewer", "operator", "author", "admin", "partner"],
        Who::Starters => &["operator", "author", "admin", "partner"],
        Who::Readers => &["viewer", "operator", "author", "admin"],
        Who::Operators => &["operator", "author", "admin"],
        Who::Authors => &["author", "admin"],
        Who::Admins => &["admin"],
        Who::Workers => &["worker", "admin"],
        Who::ReadersOfAll => return everywhere && ["viewer", "operator", "author", "admin"].contains(&role),
        Who::OperatorsOfAll => return everywhere && ["operator", "author", "admin"].contains(&role),
        Who::AdminsOfAll => return everywhere && role == "admin",
    };
    roles.contains(&role)
}

#[test]
fn every_endpoint_has_a_row_and_every_row_an_endpoint() {
    let rows: BTreeSet<(&str, &str)> = ENDPOINTS.iter().map(|row| (row.method, row.template)).collect();
    let listed = endpoints::list();
    let guarded = listed.iter().filter(|endpoint| endpoint.needs.is_some());
    let guarded: BTreeSet<(&str, &str)> =
        guarded.map(|endpoint| (endpoint.method.as_str(), endpoint.path)).collect();
    assert_eq!(rows, guarded, "a new endpoint needs a row in rows.rs that says who may use it");
}

#[test]
fn only_the_document_is_public() {
    let listed = endpoints::list();
    let public = listed.iter().filter(|endpoint| endpoint.needs.is_none()).map(|endpoint| endpoint.path);
    assert_eq!(public.collect::<Vec<_>>(), ["/openapi.json", "/docs", "/docs/style.css"]);
}

#[tokio::test]
async fn a_refused_change_is_audited() {
    let office = Office::open().await;
    let cancel = ENDPOINTS.iter().find(|row| row.template == "/runs/{id}/cancel").unwrap();
    let admin = office.token(&["admin:acme"]);
    let audit = async || {
        let path = "/audit?action=runs_post_cancel";
        let (_, body) = office.request(&Method::GET, path, Some(&admin), Some("acme"), "").await;
        serde_json::from_str::<Value>(&body).unwrap()["items"].as_array().unwrap().clone()
    };
    for (grant, status, code) in [
        ("viewer:acme", StatusCode::FORBIDDEN, "forbidden"),
        // The run is hidden from those with grants for other workflows only.
        ("operator:acme/billing", StatusCode::NOT_FOUND, "not_found"),
    ] {
        let known = audit().await.len();
        assert_eq!(office.ask(cancel, &[grant], Some("acme")).await, status, "{grant}");
        let entries = audit().await;
        assert_eq!(entries.len(), known + 1, "{grant}");
        assert_eq!(entries[0]["status"], status.as_u16(), "{grant}");
        assert_eq!(entries[0]["after"]["error_code"], code, "{grant}");
        assert_eq!(entries[0]["target"], format!("/api/v1/runs/{}/cancel", office.run()));
    }
}

#[tokio::test]
async fn each_role_may_use_what_its_row_says_and_nothing_else() {
    let office = Office::open().await;
    for row in ENDPOINTS {
        for role in ROLES {
            for everywhere in [false, true] {
                let reach = if everywhere { "*" } else { "acme" };
                let status = office.ask(row, &[&format!("{role}:{reach}")], Some("acme")).await;
                let case = format!("{} {} as {role}:{reach}: {status}", row.method, row.template);
                match expected(row, role, everywhere) {
                    true => assert!(
                        !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                            && !status.is_server_error()
                            && status != StatusCode::METHOD_NOT_ALLOWED,
                        "{case}"
                    ),
                    false => assert_eq!(status, StatusCode::FORBIDDEN, "{case}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_role_may_in_one_tenant_it_may_not_in_another() {
    let office = Office::open().await;
    for row in ENDPOINTS {
        for role in ROLES {
            // By the header: refused, whether or not there is such a tenant.
            for tenant in ["acme", "nowhere"] {
                let status = office.ask(row, &[&format!("{role}:other")], Some(tenant)).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{} {} {role}", row.method, row.template);
            }
            // By naming what is another tenant's: it is not there.
            let (status, body) = office.tell(row, &[&format!("{role}:other")], None).await;
            let case = format!("{} {} as {role}:other: {status} {body}", row.method, row.template);
            if row.names_something && expected(row, role, false) {
                assert_eq!(status, StatusCode::NOT_FOUND, "{case}");
            }
            assert!(!body.contains("orders") || row.echoes, "{case}");
        }
    }
    assert_eq!(office.changed().await, "", "nothing of acme was touched");
}

#[tokio::test]
async fn without_a_token_that_is_believed_no_endpoint_is_used_by_anyone() {
    let office = Office::open().await;
    for row in ENDPOINTS {
        for (kind, token) in bad_tokens() {
            let status = office.send(row, token.as_deref(), Some("acme")).await.0;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{} {} {kind}", row.method, row.template);
        }
    }
    assert_eq!(office.changed().await, "");
}

#[tokio::test]
async fn who_is_believed_and_has_no_role_may_nothing() {
    let office = Office::open().await;
    for row in ENDPOINTS {
        assert_eq!(
            office.ask(row, &[], None).await,
            StatusCode::FORBIDDEN,
            "{} {}",
            row.method,
            row.template
        );
    }
}

#[tokio::test]
async fn asking_how_long_something_is_needs_what_reading_it_needs() {
    let office = Office::open().await;
    for (grant, status) in [("viewer:acme", StatusCode::OK), ("worker:acme", StatusCode::FORBIDDEN)] {
        let token = office.token(&[grant]);
        let answer = office.request(&Method::HEAD, "/workflows", Some(&token), Some("acme"), "").await;
        assert_eq!(answer.0, status, "{grant}");
    }
}

#[tokio::test]
async fn a_tenant_in_which_somebody_has_no_role_is_not_there_for_them() {
    let office = Office::open().await;
    let ask = async |path: &str, grant: &str| {
        office.request(&Method::GET, path, Some(&office.token(&[grant])), None, "").await
    };
    assert_eq!(ask("/tenants/acme", "admin:other").await.0, StatusCode::NOT_FOUND);
    let (_, own) = ask("/tenants", "viewer:other").await;
    assert!(own.contains("\"other\"") && !own.contains("acme") && !own.contains("default"), "{own}");
    let (_, all) = ask("/tenants", "viewer:*").await;
    assert!(all.contains("\"other\"") && all.contains("acme") && all.contains("default"), "{all}");
}
