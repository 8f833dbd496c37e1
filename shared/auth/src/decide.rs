//! Who may do what: one function decides, and says why not.

use crate::{Grant, Permission};

/// Which workflows something is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About<'a> {
    /// One, by name.
    One(&'a str),
    /// Several, of which each is decided about later: at least one must be allowed.
    Some,
    /// The tenant as a whole: what is allowed for some workflows only does not count.
    Whole,
}

/// Whether grants allow something in a tenant, or where none is given, in the whole instance. Otherwise in words who
/// would be allowed to.
pub fn may(
    grants: &[Grant],
    permission: Permission,
    tenant: Option<&str>,
    about: About<'_>,
) -> Result<(), String> {
    let allows = |grant: &&Grant| {
        let workflow = match about {
            About::One(name) => grant.workflows.fits(name),
            About::Some => true,
            About::Whole => grant.workflows.is_all(),
        };
        grant.role.has(permission) && grant.tenant.covers(tenant) && workflow
    };
    if grants.iter().any(|grant| allows(&grant)) {
        return Ok(());
    }
    let roles: Vec<&str> = permission.roles().map(crate::Role::name).collect();
    let place = tenant.map_or("all tenants (`*`)".to_owned(), |tenant| format!("tenant `{tenant}`"));
    let which = match about {
        About::One(name) => format!(" for workflow `{name}`"),
        About::Some => String::new(),
        About::Whole => " for all workflows".to_owned(),
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
            ("viewer:acme", Read, acme, About::Some, true),
            ("viewer:acme", Operate, acme, About::Some, false),
            ("viewer:acme", Read, Some("other"), About::Some, false),
            ("viewer:acme", Read, None, About::Whole, false),
            ("viewer:*", Read, None, About::Whole, true),
            ("operator:acme/etl-*", Operate, acme, About::One("etl-eu"), true),
            ("operator:acme/etl-*", Operate, acme, About::One("billing"), false),
            ("operator:acme/etl-*", Operate, acme, About::Some, true),
            ("operator:acme/etl-*", Operate, acme, About::Whole, false),
            ("operator:acme", Author, acme, About::One("etl"), false),
            ("author:acme", Author, acme, About::One("etl"), true),
            ("author:acme", Administer, acme, About::Whole, false),
            ("admin:acme", Administer, acme, About::Whole, true),
            ("admin:acme", Administer, None, About::Whole, false),
            ("worker:acme", Work, acme, About::Some, true),
            ("worker:acme", Read, acme, About::Some, false),
            ("partner:acme/orders", Start, acme, About::One("orders"), true),
            ("partner:acme/orders", Follow, acme, About::One("orders"), true),
            ("partner:acme/orders", Read, acme, About::One("orders"), false),
        ] {
            let decided = may(&grants(&[held]), permission, tenant, about);
            assert_eq!(decided.is_ok(), allowed, "{held} {permission:?} {tenant:?} {about:?}: {decided:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_would_be_needed_and_what_there_is() {
        let words = may(&grants(&["viewer:acme"]), Permission::Operate, Some("acme"), About::One("etl"));
        assert_eq!(
            words.unwrap_err(),
            "requires role operator, author or admin in tenant `acme` for workflow `etl`; you have viewer:acme"
        );
    }
}
