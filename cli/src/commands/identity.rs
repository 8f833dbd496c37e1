//! `ebb tokens` and `ebb grants`: who may do what.

use std::process::ExitCode;

use anyhow::Result;
use api::access::{GrantBody, GrantView, TokenBody, TokenView};
use reqwest::header::HeaderMap;

use super::connect;
use crate::args::{Grants, NewToken, Shared, Tokens};
use crate::output;

pub(super) async fn tokens(shared: &Shared, arguments: Tokens) -> Result<ExitCode> {
    match arguments {
        Tokens::Create(new) => create(shared, new).await?,
        Tokens::List => {
            let found: Vec<TokenView> = connect(shared)?.all(&["tokens"]).await?;
            output::print(shared, &found, || token_table(&found))?;
        }
        Tokens::Revoke { id } => {
            let gone: TokenView = connect(shared)?.delete(&["tokens", &id.to_string()]).await?;
            output::print(shared, &gone, || format!("revoked token {}", gone.name))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(shared: &Shared, new: NewToken) -> Result<()> {
    let body = TokenBody {
        name: new.name,
        role: new.scope.role,
        tenant: new.scope.reach,
        workflows: new.scope.workflows,
        days: Some(new.days),
    };
    let made: TokenView = connect(shared)?.post(&["tokens"], HeaderMap::new(), &body).await?;
    if shared.json {
        return Ok(output::json(&made)?);
    }
    eprintln!(
        "{} has the role {} in {} until {}; the token is shown only once:",
        made.name,
        made.role,
        made.tenant,
        output::time(made.expires_at)
    );
    Ok(output::line(made.token.unwrap_or_default())?)
}

pub(super) async fn grants(shared: &Shared, arguments: Grants) -> Result<ExitCode> {
    match arguments {
        Grants::Add { who, scope } => {
            let (tenant, workflows) = (scope.reach, scope.workflows);
            let body = GrantBody { who, role: scope.role, tenant, workflows };
            let given: GrantView = connect(shared)?.post(&["grants"], HeaderMap::new(), &body).await?;
            output::print(shared, &given, || {
                format!("{} has the role {} in {}", given.who, given.role, given.tenant)
            })?;
        }
        Grants::List => {
            let found: Vec<GrantView> = connect(shared)?.all(&["grants"]).await?;
            output::print(shared, &found, || grant_table(&found))?;
        }
        Grants::Remove { id } => {
            let gone: GrantView = connect(shared)?.delete(&["grants", &id.to_string()]).await?;
            output::print(shared, &gone, || {
                format!("{} no longer has the role {} in {}", gone.who, gone.role, gone.tenant)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn token_table(tokens: &[TokenView]) -> String {
    let head = ["ID", "NAME", "ROLE", "TENANT", "WORKFLOWS", "STATE", "EXPIRES", "CREATED BY"];
    let rows = tokens.iter().map(|token| {
        let expires = output::time(token.expires_at);
        [&token.id.to_string(), &token.name, &token.role, &token.tenant, &token.workflows, &token.state]
            .into_iter()
            .chain([&expires, &token.created_by])
            .cloned()
            .collect::<Vec<_>>()
    });
    output::table(head, rows)
}

fn grant_table(grants: &[GrantView]) -> String {
    let head = ["ID", "WHO", "ROLE", "TENANT", "WORKFLOWS", "GRANTED BY"];
    let rows = grants.iter().map(|grant| {
        let id = grant.id.to_string();
        [&id, &grant.who, &grant.role, &grant.tenant, &grant.workflows, &grant.created_by]
            .map(Clone::clone)
            .to_vec()
    });
    output::table(head, rows)
}
