//! Dead dead_letters: messages that could not be taken in, to be looked at, published again or thrown away.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Instant, RunId};
use runtime::Replayed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{DeadLetter, DeadLetterFilter};
use tracing::info;

use crate::page::{MAX_LIMIT, Page, Wanted};
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

/// A dead letter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeadLetterView {
    /// Its id.
    pub id: String,
    /// When it was given up on.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The subscription or endpoint at which it arrived.
    pub source: String,
    /// Why it was given up on.
    pub reason: String,
    /// The type of the message that it holds; none where it holds no message of ours.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The run that the message is about.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
    /// The message's data; only where one dead_letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Its body as it came; only where one dead_letter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// What to do with dead letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Publish them again.
    Replay,
    /// Throw them away.
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

/// What to do with all dead letters that a filter lets pass.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeadLetterBulkBody")]
pub struct BulkBody {
    /// What to do.
    pub action: Action,
    /// With which.
    #[serde(default)]
    pub filter: BulkFilter,
    /// Only say how many it would be.
    #[serde(default)]
    pub dry_run: bool,
    /// From an earlier answer.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// What became of a bulk action. One call sees to a hundred dead_letters at most.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "DeadLetterBulkView")]
pub struct BulkView {
    /// How many dead letters this call examined.
    pub matched: usize,
    /// How many of them it replayed or discarded; those that it would have, in a dry run.
    pub done: usize,
    /// Ids of those that hold no message of ours and were left where they are.
    pub left: Vec<String>,
    /// What to ask with for those that this call did not get to.
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

type Place = (Instant, String);

fn place(dead_letter: &DeadLetter) -> Place {
    (dead_letter.at, dead_letter.id.clone())
}

/// A page of the dead letters, newest first.
pub async fn list(api: &Api, query: &ListQuery) -> Result<Page<DeadLetterView>, Problem> {
    let wanted = Wanted::<Place>::read(query.limit, query.cursor.as_deref())?;
    let filter = DeadLetterFilter {
        source: query.source.clone(),
        text: query.text.clone(),
        after: wanted.after.clone(),
        limit: wanted.rows(),
    };
    let rows = api.app.runtime.store().dead_letters(&filter).await.map_err(error::store)?;
    Ok(wanted.page(rows, place).map(DeadLetterView::new))
}

async fn find(api: &Api, id: &str) -> Result<DeadLetter, Problem> {
    let found = api.app.runtime.store().dead_letter(id).await.map_err(error::store)?;
    found.ok_or_else(|| Problem::not_found(format!("there is no dead letter `{id}`")))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    _: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<DeadLetterView>>, Problem> {
    list(&api, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    _: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    find(&api, &id).await.map(DeadLetterView::whole).map(Json)
}

/// Publishes the message of a dead letter again.
pub(crate) async fn post_replay(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    let dead_letter = find(&api, &id).await?;
    match api.app.runtime.replay(&dead_letter).await.map_err(error::runtime)? {
        Replayed::Sent => {
            info!("{} replayed dead letter {id}", caller.name);
            Ok(Json(DeadLetterView::new(dead_letter)))
        }
        Replayed::NoMessage(reason) => {
            let message = format!(
                "dead letter `{id}` holds no message of ours and cannot be replayed, only discarded: {reason}"
            );
            Err(Problem::new(StatusCode::CONFLICT, "not_a_message", message).with(json!({ "id": id })))
        }
    }
}

/// Throws a dead letter away.
pub(crate) async fn post_discard(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    let dead_letter = find(&api, &id).await?;
    api.app.runtime.store().discard(&id).await.map_err(error::store)?;
    info!("{} discarded dead letter {id}", caller.name);
    Ok(Json(DeadLetterView::new(dead_letter)))
}

/// Replays or discards dead letters that a filter lets pass, newest first, a bounded number at a time.
pub(crate) async fn post_bulk(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<BulkBody>,
) -> Result<Json<BulkView>, Problem> {
    let wanted = Wanted::<Place>::read(Some(MAX_LIMIT), body.cursor.as_deref())?;
    let filter = DeadLetterFilter {
        source: body.filter.source,
        text: body.filter.text,
        after: wanted.after.clone(),
        limit: wanted.rows(),
    };
    let rows = api.app.runtime.store().dead_letters(&filter).await.map_err(error::store)?;
    let Page { items, next_cursor } = wanted.page(rows, place);
    let (matched, mut left) = (items.len(), Vec::new());
    for dead_letter in items {
        if !treat(&api, body.action, body.dry_run, &dead_letter).await? {
            left.push(dead_letter.id);
        }
    }
    let done = matched - left.len();
    if !body.dry_run {
        info!("{} asked to {:?} dead letters: {done} of {matched} done", caller.name, body.action);
    }
    Ok(Json(BulkView { matched, done, left, next_cursor }))
}

/// Does it, or would do it. Answers whether it can be done.
async fn treat(api: &Api, action: Action, dry_run: bool, dead_letter: &DeadLetter) -> Result<bool, Problem> {
    let runtime = &api.app.runtime;
    match action {
        Action::Replay if dry_run => Ok(runtime::message_of(dead_letter).is_ok()),
        Action::Replay => Ok(runtime.replay(dead_letter).await.map_err(error::runtime)? == Replayed::Sent),
        Action::Discard if dry_run => Ok(true),
        Action::Discard => runtime.store().discard(&dead_letter.id).await.map(|_| true).map_err(error::store),
    }
}
