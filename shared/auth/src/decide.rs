//! The authorization decision: [`may`] is the only function that makes it.

use crate::{Grant, Permission};

/// Which workflows a request concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkflowScope<'a> {
    /// One workflow, by its name.
    One(&'a str),
    /// Several, each checked later: the caller needs the permission for at least one.
    Some,
    /// The whole tenant: grants for some workflows do not suffice.
    Whole,
}

/// Checks whether grants include a permission in a tenant, or in the whole instance if no tenant is given. The error names
/// the roles that have the permission.
pub fn may(
    grants: &[Grant],
    permission: Permission,
    tenant: Option<&str>,
    about: WorkflowScope<'_>,
) -> Result<(), String> {
    let allows = |grant: &&Grant| {
        let workflow = match about {
            WorkflowScope::One(name) => grant.workflows.fits(name),
            WorkflowScope::Some => true,
            WorkflowScope::Whole => grant.workflows.is_all(),
        };
        grant.role.has(permission) && grant.tenant.covers(tenant) && workflow
    };
    if grants.iter().any(|grant| allows(&grant)) {
        return Ok(());
    }
    let roles: Vec<&str> = permission.roles().map(crate::Role::name).collect();
    let place = tenant.map_or("all tenants (`*`)".to_owned(), |tenant| format!("tenant `{tenant}`"));
    let which = match about {
        WorkflowScope::One(name) => format!(" for workflow `{name}`"),
        WorkflowScope::Some => String::new(),
        WorkflowScope::Whole => " for all workflows".to_owned(),
    };
    let held: Vec<String> = grants.iter().map(Grant::to_string).collect();
    let held = if held.is_empty() { "no role".to_owned() } else { held.join(", ") };
    Err(format!("requires role {} in {place}{which}; you have {held}", one_of(&roles)))
}

/// `operator, author or admin`
fn one_of(roles: &[&str]) -> String {
    match roles {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        roles => roles.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &[&str]) -> Vec<Grant> {
        text.iter().map(|grant| grant.parse().unwrap()).collect()
    }

    #[test]
    fn a_grant_allows_what_its_role_has_where_it_reaches() {
        use Permission::{Administer, Author, Follow, Operate, Read, Start, Work};
        let acme = Some("acme");
        for (held, permission, tenant, about, allowed) in [
            ("viewer:acme", Read, acme, WorkflowScope::Some, true),
            ("viewer:acme", Operate, acme, WorkflowScope::Some, false),
            ("viewer:acme", Read, Some("other"), WorkflowScope::Some, false),
            ("viewer:acme", Read, None, WorkflowScope::Whole, false),
            ("viewer:*", Read, None, WorkflowScope::Whole, true),
            ("operator:acme/etl-*", Operate, acme, WorkflowScope::One("etl-eu"), true),
            ("operator:acme/etl-*", Operate, acme, WorkflowScope::One("billing"), false),
            ("operator:acme/etl-*", Operate, acme, WorkflowScope::Some, true),
            ("operator:acme/etl-*", Operate, acme, WorkflowScope::Whole, false),
            ("operator:acme", Author, acme, WorkflowScope::One("etl"), false),
            ("author:acme", Author, acme, WorkflowScope::One("etl"), true),
            ("author:acme", Administer, acme, WorkflowScope::Whole, false),
            ("admin:acme", Administer, acme, WorkflowScope::Whole, true),
            ("admin:acme", Administer, None, WorkflowScope::Whole, false),
            ("worker:acme", Work, acme, WorkflowScope::Some, true),
            ("worker:acme", Read, acme, WorkflowScope::Some, false),
            ("partner:acme/orders", Start, acme, WorkflowScope::One("orders"), true),
            ("partner:acme/orders", Follow, acme, WorkflowScope::One("orders"), true),
            ("partner:acme/orders", Read, acme, WorkflowScope::One("orders"), false),
        ] {
            let decided = may(&grants(&[held]), permission, tenant, about);
            assert_eq!(decided.is_ok(), allowed, "{held} {permission:?} {tenant:?} {about:?}: {decided:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_required_roles_and_the_callers_grants() {
        let words =
            may(&grants(&["viewer:acme"]), Permission::Operate, Some("acme"), WorkflowScope::One("etl"));
        assert_eq!(
            words.unwrap_err(),
            "requires role operator, author or admin in tenant `acme` for workflow `etl`; you have viewer:acme"
        );
    }
}
