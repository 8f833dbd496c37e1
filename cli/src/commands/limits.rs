//! `ebb limits`: limits on active tasks, who holds slots, and who waits.

use std::process::ExitCode;

use anyhow::Result;
use api::limits::{ContenderView, LimitBody, LimitDetail, LimitView, ShareView};
use api::page::Page;
use reqwest::header::HeaderMap;
use serde::Serialize;

use super::connect;
use crate::args::{LimitAction, Limits, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Limits) -> Result<ExitCode> {
    let client = connect(shared)?;
    let limits = match arguments.action {
        None => client.all::<LimitView>(&["limits"]).await?,
        Some(LimitAction::Show { kind, name }) => {
            let detail: LimitDetail = client.get(&["limits", &kind, &name], &[]).await?;
            return show(shared, &detail);
        }
        Some(LimitAction::Set { kind, name, slots }) => {
            let body = LimitBody { slots: slots.0 };
            let set: LimitView = client.post(&["limits", &kind, &name], HeaderMap::new(), &body).await?;
            return print(shared, &set, std::slice::from_ref(&set));
        }
    };
    let page = Page { items: limits, next_cursor: None };
    print(shared, &page, &page.items)
}

fn print(shared: &Shared, whole: &impl Serialize, limits: &[LimitView]) -> Result<ExitCode> {
    if shared.json {
        output::json(whole)?;
    } else if limits.is_empty() {
        output::line("no limits yet: a limit exists once a task needs it")?;
    } else {
        output::line(table(limits))?;
        for limit in limits.iter().filter(|limit| !limit.fairness_groups.is_empty()) {
            output::line(format!("\nwait queue of the {} `{}`", limit.kind, limit.name))?;
            output::line(shares(&limit.fairness_groups))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(shared: &Shared, detail: &LimitDetail) -> Result<ExitCode> {
    if shared.json {
        output::json(detail)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(table(std::slice::from_ref(&detail.limit)))?;
    for (heading, tasks) in [("holders", &detail.holders), ("next in the wait queue", &detail.next)] {
        output::line(format!("\n{heading}"))?;
        match tasks.is_empty() {
            true => output::line("none")?,
            false => output::line(contenders(tasks))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(limits: &[LimitView]) -> String {
    let row = |limit: &LimitView| {
        vec![
            limit.kind.clone(),
            limit.name.clone(),
            limit.used.to_string(),
            limit.slots.map_or_else(|| "unlimited".to_owned(), |slots| slots.to_string()),
            limit.waiting.to_string(),
            limit.oldest.map(output::time).unwrap_or_default(),
        ]
    };
    output::table(["LIMIT", "NAME", "USED", "SLOTS", "WAITING", "OLDEST"], limits.iter().map(row))
}

fn shares(groups: &[ShareView]) -> String {
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let row = |share: &ShareView| {
        let tenant = if share.own { "own" } else { "another tenant" };
        vec![
            share.backfill.map_or_else(|| tenant.to_owned(), |backfill| format!("backfill {backfill}")),
            share.weight.to_string(),
            share.waiting.to_string(),
            share.oldest.map(output::time).unwrap_or_default(),
            percent(share.entitled),
            percent(share.received),
        ]
    };
    output::table(["GROUP", "WEIGHT", "WAITING", "OLDEST", "ENTITLED", "RECEIVED"], groups.iter().map(row))
}

fn contenders(tasks: &[ContenderView]) -> String {
    let row = |task: &ContenderView| {
        vec![
            task.run.to_string(),
            task.workflow.clone(),
            task.task.clone(),
            task.state.name().to_owned(),
            output::time(task.since),
        ]
    };
    output::table(["RUN", "WORKFLOW", "TASK", "STATE", "SINCE"], tasks.iter().map(row))
}
