//! The form that begins a backfill of a workflow.

use std::collections::BTreeMap;

use api::backfills::{BackfillView, PlanView};
use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::Answer;
use super::{Named, Title, backfills};
use crate::refused::Refused;
use crate::sent::Sent;
use crate::shell::{Shell, back};
use crate::show;

#[derive(Template)]
#[template(path = "backfill.html")]
struct BackfillPage {
    shell: Shell,
    title: Title,
    sent: BTreeMap<&'static str, String>,
    plan: Option<PlanView>,
    wrong: Option<String>,
    backfills: Vec<BackfillView>,
}

impl BackfillPage {
    async fn new(named: &Named, sent: BTreeMap<&'static str, String>) -> Result<Self, Refused> {
        let Named { visitor, record, .. } = named;
        let (shell, title) = (visitor.shell.clone(), Title::new(record, "backfill"));
        let backfills = backfills(visitor, &record.name).await?;
        Ok(Self { shell, title, sent, plan: None, wrong: None, backfills })
    }

    fn was(&self, field: &str) -> &str {
        self.sent.get(field).map(String::as_str).unwrap_or_default()
    }
}

pub(crate) async fn form(named: Named) -> Answer {
    Ok(show::html(&BackfillPage::new(&named, BTreeMap::new()).await?))
}

/// Shows what a backfill would do, and once that is confirmed, begins it.
pub(crate) async fn begin(named: Named, sent: Sent) -> Result<Response, Refused> {
    sent.only(["from", "to", "rerun", "max_parallel", "schedule", "sure"])?;
    let text = |field: &str| sent.field(field).unwrap_or_default().to_owned();
    let number = |field: &str| sent.field(field).and_then(|text| text.parse::<u32>().ok());
    let sure = sent.field("sure").is_some();
    let body = json!({
        "workflow": named.record.name, "from": text("from"), "to": text("to"), "schedule": sent.field("schedule"),
        "max_parallel": number("max_parallel").unwrap_or(api::backfills::DEFAULT_PARALLEL),
        "rerun": sent.field("rerun").unwrap_or("missing"), "dry_run": !sure,
    });
    let kept = ["from", "to", "rerun", "max_parallel"].map(|field| (field, text(field)));
    let mut page = BackfillPage::new(&named, kept.into()).await?;
    let ask = &named.visitor.ask;
    if sure {
        match ask.post::<BackfillView>("/backfills", &body).await {
            Ok(_) => return Ok(back("/operations/backfills", true, "The backfill was begun.")),
            Err(no) => page.wrong = Some(no.message),
        }
    } else {
        match ask.post::<PlanView>("/backfills", &body).await {
            Ok(plan) => page.plan = Some(plan),
            Err(no) => page.wrong = Some(no.message),
        }
    }
    let status = if page.wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, show::html(&page)).into_response())
}
