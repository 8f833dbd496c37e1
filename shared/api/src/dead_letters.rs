//! Dead letters: messages that could not be processed, to be listed, replayed or discarded.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Instant, RunId};
use read::{DeadLetter, DeadLetterFilter};
use runtime::{BulkAction, BulkOutcome, Replayed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::info;

use crate::page::{self, MAX_LIMIT, Page, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

/// Which dead letters to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this source.
    pub source: Option<String>,
    /// Only those with this text in their reason or body.
    pub text: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// A message that could not be processed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeadLetterView {
    /// The id of the dead letter.
    pub id: String,
    /// When it was dead-lettered.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The subscription or endpoint at which it arrived.
    pub source: String,
    /// Why it cannot be processed.
    pub reason: String,
    /// The type of its message; null if it is not a message of Ebbflow.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The run that the message is about.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
    /// The message's data; only in the response for one dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The body as it was received; only in the response for one dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// An action on dead letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Publish their messages again.
    Replay,
    /// Delete the dead letters.
    Discard,
}

/// Which dead letters a bulk action is about.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeadLetterBulkFilter")]
pub struct BulkFilter {
    /// Only of this source.
    pub source: Option<String>,
    /// Only those with this text in their reason or body.
    pub text: Option<String>,
}

/// An action on the dead letters that pass a filter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeadLetterBulkBody")]
pub struct BulkBody {
    /// The action to apply to each.
    pub action: Action,
    /// The dead letters to act on.
    #[serde(default)]
    pub filter: BulkFilter,
    /// Whether to count them only.
    #[serde(default)]
    pub dry_run: bool,
    /// The `next_cursor` of an earlier response.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of a bulk action. One request acts on at most a hundred dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "DeadLetterBulkView")]
pub struct BulkView {
    /// How many dead letters it examined.
    pub matched: usize,
    /// How many of them it replayed or discarded, or would have in a dry run.
    pub done: usize,
    /// The ids of dead letters that stay, since they hold no message of Ebbflow.
    pub left: Vec<String>,
    /// The `cursor` of the next request; null when all are done.
    pub next_cursor: Option<String>,
}

impl DeadLetterView {
    fn new(dead_letter: DeadLetter) -> Self {
        let message = runtime::message_of(&dead_letter).ok();
        Self {
            kind: message.as_ref().map(|message| message.kind().to_owned()),
            run: message.as_ref().and_then(model::Message::run),
            id: dead_letter.id,
            at: dead_letter.at,
            source: dead_letter.source,
            reason: dead_letter.reason,
            data: None,
            body: None,
        }
    }

    fn whole(dead_letter: DeadLetter) -> Self {
        let data = runtime::message_of(&dead_letter).ok().map(|message| message.data());
        let body = Some(dead_letter.body.clone());
        Self { data, body, ..Self::new(dead_letter) }
    }
}

/// A page of the dead letters, newest first.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<DeadLetterView>, Problem> {
    let wanted = Wanted::<(Instant, String)>::read(query.limit, query.cursor.as_deref())?;
    let filter = DeadLetterFilter {
        source: query.source.clone(),
        text: query.text.clone(),
        after: wanted.after,
        limit: wanted.limit,
    };
    let letters = api.reader(caller).platform(Read)?.dead_letters(&filter).await?;
    Ok(Page::of(letters).map(DeadLetterView::new))
}

async fn find(api: &Api, caller: &Caller, id: &str) -> Result<DeadLetter, Problem> {
    Ok(api.reader(caller).platform(Read)?.dead_letter(id).await?)
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<DeadLetterView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    find(&api, &caller, &id).await.map(DeadLetterView::whole).map(Json)
}

/// Publishes the message of a dead letter again.
pub(crate) async fn post_replay(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    let dead_letter = find(&api, &caller, &id).await?;
    match api.app.runtime.dead_letters().replay(&dead_letter).await.map_err(error::runtime)? {
        Replayed::Sent => {
            info!("{} replayed dead letter {id}", caller.name);
            Ok(Json(DeadLetterView::new(dead_letter)))
        }
        Replayed::NoMessage(reason) => {
            let message =
                format!("dead letter `{id}` is not an Ebbflow message and can only be discarded: {reason}");
            Err(Problem::new(StatusCode::CONFLICT, "not_a_message", message).with(json!({ "id": id })))
        }
    }
}

/// Deletes a dead letter.
pub(crate) async fn post_discard(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    let dead_letter = find(&api, &caller, &id).await?;
    api.app.runtime.dead_letters().discard(&id).await.map_err(error::runtime)?;
    info!("{} discarded dead letter {id}", caller.name);
    Ok(Json(DeadLetterView::new(dead_letter)))
}

/// Replays or discards dead letters that pass a filter, newest first, a limited number per request.
pub(crate) async fn post_bulk(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<BulkBody>,
) -> Result<Json<BulkView>, Problem> {
    let wanted = Wanted::<(Instant, String)>::read(Some(MAX_LIMIT), body.cursor.as_deref())?;
    let BulkFilter { source, text } = body.filter;
    let filter = DeadLetterFilter { source, text, after: wanted.after, limit: wanted.limit };
    let action = match body.action {
        Action::Replay => BulkAction::Replay,
        Action::Discard => BulkAction::Discard,
    };
    let outcome = api.app.runtime.dead_letters().replay_or_discard(action, &filter, body.dry_run).await;
    let BulkOutcome { matched, left, last } = outcome.map_err(error::runtime)?;
    let done = matched - left.len();
    if !body.dry_run {
        info!("{} asked to {:?} dead letters: {done} of {matched} done", caller.name, body.action);
    }
    Ok(Json(BulkView { matched, done, left, next_cursor: last.as_ref().map(page::encode) }))
}
