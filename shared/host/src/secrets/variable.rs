//! The variable of a secret: `EBB_SECRET_TENANT__NAME`.
//!
//! A tenant's name has no two hyphens in a row and ends with a letter or digit, so the first `__` ends the tenant, and no two
//! tenants have a variable in common. Names of one tenant's secrets that differ only in case and in `-` and `_` do.

use std::fmt;

use model::{SecretName, TenantName};

/// The variable of a secret, in parts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Variable {
    tenant: String,
    name: String,
}

impl Variable {
    /// The prefix of these variables.
    pub(super) const PREFIX: &str = "EBB_SECRET_";

    const SEPARATOR: &str = "__";

    /// The variable of a tenant's secret.
    pub(super) fn of(tenant: &TenantName, name: &SecretName) -> Self {
        Self { tenant: upper(tenant.as_str()), name: upper(name.as_str()) }
    }

    /// Reads the name of a variable, which begins with the prefix. The error says how to call it.
    pub(super) fn parse(variable: &str) -> Result<Self, String> {
        let rest = variable.strip_prefix(Self::PREFIX).unwrap_or(variable);
        let parts = rest.split_once(Self::SEPARATOR).filter(|(tenant, name)| {
            let tenant_name = tenant.to_ascii_lowercase().replace('_', "-");
            TenantName::new(&tenant_name).is_ok_and(|valid| upper(valid.as_str()) == *tenant)
                && SecretName::new(name).is_ok_and(|valid| upper(valid.as_str()) == *name)
        });
        let (tenant, name) = parts.ok_or_else(|| {
            format!(
                "{variable} is the secret of no tenant: call it {prefix}TENANT{separator}NAME in capital letters, such as \
                 {prefix}DEFAULT{separator}API_KEY for the secret `API_KEY` of the tenant `default`",
                prefix = Self::PREFIX,
                separator = Self::SEPARATOR,
            )
        })?;
        Ok(Self { tenant: tenant.to_owned(), name: name.to_owned() })
    }

    /// Whether it belongs to a tenant.
    pub(super) fn is_of(&self, tenant: &TenantName) -> bool {
        self.tenant == upper(tenant.as_str())
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}{}", Self::PREFIX, self.tenant, Self::SEPARATOR, self.name)
    }
}

fn upper(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}
