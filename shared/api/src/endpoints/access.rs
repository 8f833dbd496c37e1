//! Service tokens and grants.

use auth::Permission::Administer;

use super::{Before, Idempotency, On, Row, delete, get, post};
use crate::access;

pub(super) fn rows() -> Vec<Row> {
    vec![
        get("/tokens", access::get_tokens).id("access_get_tokens").needs(Administer, On::Tenant).docs(
            "List service tokens",
            "Returns the service tokens of the tenant, without the tokens themselves.",
        ),
        post("/tokens", access::post_token)
            .changes(Before::Nothing, Idempotency::NeverStored)
            .id("access_post_token")
            .needs(Administer, On::Tenant)
            .docs(
                "Create a service token",
                "Creates a token for a program, with one role. The response is the only one that \
                 contains the token; only its hash is stored.",
            ),
        delete("/tokens/{id}", access::delete_token)
            .audited(Before::Nothing)
            .id("access_delete_token")
            .needs(Administer, On::Tenant)
            .docs("Revoke a service token", "Revokes a token. It is rejected everywhere within seconds."),
        get("/grants", access::get_grants).id("access_get_grants").needs(Administer, On::Tenant).docs(
            "List grants",
            "Returns the roles granted over the API. Grants from the configuration are not listed.",
        ),
        post("/grants", access::post_grant)
            .audited(Before::Nothing)
            .id("access_post_grant")
            .needs(Administer, On::Tenant)
            .docs(
                "Grant a role",
                "Grants a role to a person, a domain or a group. Granting it again changes nothing.",
            ),
        delete("/grants/{id}", access::delete_grant)
            .audited(Before::Nothing)
            .id("access_delete_grant")
            .needs(Administer, On::Tenant)
            .docs(
                "Revoke a grant",
                "Revokes a role that was granted over the API. It ends everywhere within seconds.",
            ),
    ]
}
