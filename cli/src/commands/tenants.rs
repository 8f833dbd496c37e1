//! `ebb tenants`: tenants, their weights and limits.

use std::process::ExitCode;

use anyhow::Result;
use api::tenants::{TenantBody, TenantView};
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{Shared, TenantAction, Tenants};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Tenants) -> Result<ExitCode> {
    let client = connect(shared)?;
    let tenant: TenantView = match arguments.action {
        None => {
            let all: Vec<TenantView> = client.all(&["tenants"]).await?;
            output::print(shared, &json!({ "items": all }), || table(&all))?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(TenantAction::Show { name }) => client.get(&["tenants", &name], &[]).await?,
        Some(TenantAction::Set { name, weight, max_active_tasks }) => {
            let max_active_tasks = max_active_tasks.map(|slots| slots.0);
            let body = TenantBody { weight, max_active_tasks };
            client.post(&["tenants", &name], HeaderMap::new(), &body).await?
        }
    };
    output::print(shared, &tenant, || table(std::slice::from_ref(&tenant)))?;
    Ok(ExitCode::SUCCESS)
}

fn table(tenants: &[TenantView]) -> String {
    let head = ["TENANT", "WEIGHT", "ACTIVE", "MAX", "WAITING", "SINCE"];
    let rows = tenants.iter().map(|tenant| {
        vec![
            tenant.name.clone(),
            tenant.weight.to_string(),
            tenant.active_tasks.to_string(),
            tenant.max_active_tasks.map_or_else(|| "unlimited".to_owned(), |max| max.to_string()),
            tenant.waiting_tasks.to_string(),
            output::time(tenant.created_at),
        ]
    });
    output::table(head, rows)
}

#[cfg(test)]
mod tests {
    use model::Instant;

    use super::*;

    #[test]
    fn a_tenant_without_a_limit_is_unlimited() {
        let created_at = Instant::from_timestamp(1_800_000_000, 0).unwrap();
        let tenant = |max_active_tasks| TenantView {
            name: "acme".into(),
            weight: 3,
            max_active_tasks,
            active_tasks: 1,
            waiting_tasks: 0,
            created_at,
        };
        assert_eq!(
            table(&[tenant(None), tenant(Some(4))]),
            "TENANT  WEIGHT  ACTIVE  MAX        WAITING  SINCE\n\
             acme    3       1       unlimited  0        2027-01-15 08:00:00Z\n\
             acme    3       1       4          0        2027-01-15 08:00:00Z"
        );
    }
}
