//! Which tenant a caller means.

use std::collections::BTreeSet;

use auth::{DEFAULT_TENANT, Grant, TenantScope};
use host::Problem;
use model::TenantId;

use super::forbidden;
use crate::Api;

/// The tenant of a request: the one it names, else the only one with a role, else the default one.
pub(super) fn choose(who: &str, grants: &[Grant], wanted: Option<&str>) -> Result<String, Problem> {
    if grants.is_empty() {
        return Err(forbidden(format!("{who} has no role; an admin can grant one with `ebb grants add`")));
    }
    let everywhere = grants.iter().any(|grant| grant.tenant == TenantScope::All);
    let named: BTreeSet<&str> = grants.iter().filter_map(|grant| grant.tenant.tenant()).collect();
    match wanted {
        Some(wanted) if everywhere || named.contains(wanted) => Ok(wanted.to_owned()),
        // Only callers with a role in it may know whether a tenant exists.
        Some(wanted) => Err(forbidden(format!("{who} has no role in tenant `{wanted}`"))),
        None if everywhere || named.contains(DEFAULT_TENANT) => Ok(DEFAULT_TENANT.to_owned()),
        None => match named.iter().collect::<Vec<_>>().as_slice() {
            [only] => Ok((**only).to_owned()),
            several => {
                let names: Vec<String> = several.iter().map(|name| format!("`{name}`")).collect();
                Err(Problem::bad_request(format!(
                    "choose a tenant with the header X-Ebb-Tenant: {}",
                    names.join(" or ")
                )))
            }
        },
    }
}

/// The id of a tenant. A tenant that a grant names is created; one that is only asked for is not.
pub(super) async fn find(api: &Api, name: &str, grants: &[Grant]) -> Result<TenantId, Problem> {
    let named = grants.iter().any(|grant| grant.tenant.tenant() == Some(name));
    let found = api.accounts.tenant(name, named, api.app.now()).await?;
    found.ok_or_else(|| Problem::not_found(format!("there is no tenant `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_the_one_asked_for_the_only_one_or_the_default_one() {
        for (grants, wanted, chosen) in [
            (&["viewer:acme"][..], None, Some("acme")),
            (&["viewer:acme"], Some("acme"), Some("acme")),
            (&["viewer:acme"], Some("other"), None),
            (&["viewer:acme", "admin:acme/x"], None, Some("acme")),
            (&["viewer:acme", "viewer:other"], None, None),
            (&["viewer:acme", "viewer:other"], Some("other"), Some("other")),
            (&["viewer:acme", "viewer"], None, Some("default")),
            (&["admin:*"], None, Some("default")),
            (&["admin:*"], Some("acme"), Some("acme")),
            (&[], None, None),
        ] {
            let grants: Vec<Grant> = grants.iter().map(|grant| grant.parse().unwrap()).collect();
            let answer = choose("ada", &grants, wanted);
            assert_eq!(answer.as_deref().ok(), chosen, "{grants:?} {wanted:?}");
        }
    }
}
