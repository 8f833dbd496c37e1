//! The audit log: who changed what, when and from where; searched and exported.

use accounts::{AuditEntry, AuditFilter, Bounded};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use host::Problem;
use model::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::openapi::shapes::Time;
use crate::page::{Page, Wanted};
use crate::request::Query;
use crate::{Api, Caller};

/// The entries that an export reads at a time.
const EXPORT_BATCH: u32 = 500;

/// The action of `ebb dev` when it finds a file that it cannot load.
pub const LOAD_DEFINITIONS: &str = "load_definitions";

/// Which entries to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this person or program.
    pub actor: Option<String>,
    /// Only of this endpoint, as the document names it.
    pub action: Option<String>,
    /// Only those with this text in their address.
    pub text: Option<String>,
    /// Only from this instant on.
    #[schemars(with = "Option<Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub from: Option<Instant>,
    /// Only before this instant.
    #[schemars(with = "Option<Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub to: Option<Instant>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// The period of the audit log to export.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportQuery {
    /// Only from this instant on.
    #[schemars(with = "Option<Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub from: Option<Instant>,
    /// Only before this instant.
    #[schemars(with = "Option<Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub to: Option<Instant>,
}

/// A change that someone made, or was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AuditEntryView {
    /// Its number: later ones are higher.
    pub id: i64,
    /// When the request was answered.
    #[schemars(with = "Time")]
    pub at: Instant,
    /// The account or service token that made the request.
    pub actor: String,
    /// The IP address of the client.
    pub origin: Option<String>,
    /// The `X-Forwarded-For` header of the request.
    pub forwarded: Option<String>,
    /// The `User-Agent` header of the request.
    pub agent: Option<String>,
    /// The operation id of the endpoint; `load_definitions` if `ebb dev` cannot load a file.
    pub action: String,
    /// The path of the request, or of the file.
    pub target: String,
    /// The idempotency key, if there was one.
    pub key: Option<String>,
    /// The status of the response.
    pub status: u16,
    /// The state before the change, in short.
    pub before: Option<Value>,
    /// The state after the change, as far as the response shows it.
    pub after: Option<Value>,
}

impl From<(i64, AuditEntry)> for AuditEntryView {
    fn from((id, entry): (i64, AuditEntry)) -> Self {
        let AuditEntry {
            at,
            actor,
            origin,
            forwarded,
            agent,
            action,
            target,
            key,
            status,
            before,
            after,
            ..
        } = entry;
        Self { id, at, actor, origin, forwarded, agent, action, target, key, status, before, after }
    }
}

/// A page of the audit log, newest first.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<AuditEntryView>, Problem> {
    let wanted = Wanted::<i64>::read(query.limit, query.cursor.as_deref())?;
    let filter = AuditFilter {
        actor: query.actor.clone(),
        action: query.action.clone(),
        text: query.text.clone(),
        from: query.from,
        to: query.to,
        after: wanted.after,
        limit: wanted.rows(),
    };
    let rows = api.accounts.audit_entries(caller.tenant, &filter).await?;
    Ok(wanted.bounded_page(rows, |(id, _)| *id).map(AuditEntryView::from))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<AuditEntryView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

/// All of it, a JSON object a line, newest first. What breaks off before its end was not all.
pub(crate) async fn get_export(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let filter =
        AuditFilter { from: query.from, to: query.to, limit: EXPORT_BATCH, ..AuditFilter::default() };
    let lines = stream::try_unfold((api, caller, Some(filter)), |(api, caller, filter)| async move {
        let Some(filter) = filter else { return Ok::<_, accounts::Error>(None) };
        let Bounded { items: rows, cut } = api.accounts.audit_entries(caller.tenant, &filter).await?;
        let more = cut || rows.len() == EXPORT_BATCH as usize;
        let last = rows.last().map(|(id, _)| *id).filter(|_| more);
        let mut text = String::new();
        for row in rows {
            text += &serde_json::to_string(&AuditEntryView::from(row)).expect("a view is made of JSON");
            text.push('\n');
        }
        let next = last.map(|last| AuditFilter { after: Some(last), ..filter });
        Ok(Some((text, (api, caller, next))))
    });
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(lines)).into_response())
}
