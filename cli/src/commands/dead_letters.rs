//! `ebb dead-letters`: messages that could not be processed.

use std::process::ExitCode;

use anyhow::Result;
use api::dead_letters::{Action, BulkBody, BulkFilter, BulkView, DeadLetterView};
use api::page::Page;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{
    DeadLetterAction, DeadLetterFilter, DeadLetters, ListDeadLetters, SelectedDeadLetters, Shared,
};
use crate::output;

const PATH: &str = "dead-letters";

/// The default length of the list.
const DEFAULT_LIMIT: u32 = 20;

pub(super) async fn run(shared: &Shared, arguments: DeadLetters) -> Result<ExitCode> {
    let all = || {
        DeadLetterAction::List(ListDeadLetters { filter: DeadLetterFilter::default(), limit: DEFAULT_LIMIT })
    };
    match arguments.action.unwrap_or_else(all) {
        DeadLetterAction::List(wanted) => list(shared, wanted).await?,
        DeadLetterAction::Show { id } => show(shared, &id).await?,
        DeadLetterAction::Replay(dead_letters) => act(shared, Action::Replay, dead_letters).await?,
        DeadLetterAction::Discard(dead_letters) => act(shared, Action::Discard, dead_letters).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(shared: &Shared, wanted: ListDeadLetters) -> Result<()> {
    let mut query = vec![("limit", wanted.limit.to_string())];
    query.extend(wanted.filter.source.map(|source| ("source", source)));
    query.extend(wanted.filter.text.map(|text| ("text", text)));
    let page: Page<DeadLetterView> = connect(shared)?.get(&[PATH], &query).await?;
    output::print_list(shared, &page, &page.items, "no dead letters", table)?;
    Ok(())
}

fn table(dead_letters: &[DeadLetterView]) -> String {
    let head = ["ID", "AT", "SOURCE", "TYPE", "REASON"];
    let rows = dead_letters.iter().map(|dead_letter| {
        vec![
            dead_letter.id.clone(),
            output::time(dead_letter.at),
            dead_letter.source.clone(),
            dead_letter.kind.clone().unwrap_or_else(|| "-".into()),
            output::first_line(&dead_letter.reason).into(),
        ]
    });
    output::table(head, rows)
}

async fn show(shared: &Shared, id: &str) -> Result<()> {
    let dead_letter: DeadLetterView = connect(shared)?.get(&[PATH, id], &[]).await?;
    if shared.json {
        return Ok(output::json(&dead_letter)?);
    }
    let kind = dead_letter.kind.as_deref().unwrap_or("not an Ebbflow message: it can only be discarded");
    let mut rows = vec![
        vec!["id".into(), dead_letter.id],
        vec!["at".into(), output::time(dead_letter.at)],
        vec!["source".into(), dead_letter.source],
        vec!["reason".into(), dead_letter.reason],
        vec!["type".into(), kind.into()],
    ];
    rows.extend(dead_letter.run.map(|run| vec!["run".into(), run.to_string()]));
    output::line(output::columns(&rows, |_, _, cell| cell))?;
    match dead_letter.data {
        Some(data) => output::json(&data)?,
        None => output::line(dead_letter.body.unwrap_or_default())?,
    }
    Ok(())
}

async fn act(shared: &Shared, action: Action, dead_letters: SelectedDeadLetters) -> Result<()> {
    let (verb, done) = match action {
        Action::Replay => ("replay", "replayed"),
        Action::Discard => ("discard", "discarded"),
    };
    let client = connect(shared)?;
    let Some(id) = &dead_letters.id else { return act_on_all(shared, action, done, dead_letters).await };
    let dead_letter: DeadLetterView = client.post(&[PATH, id, verb], HeaderMap::new(), &json!({})).await?;
    output::print(shared, &dead_letter, || format!("{done} dead letter {id}"))?;
    Ok(())
}

/// Repeats the request until none are left.
async fn act_on_all(
    shared: &Shared,
    action: Action,
    done_word: &str,
    dead_letters: SelectedDeadLetters,
) -> Result<()> {
    let client = connect(shared)?;
    let DeadLetterFilter { source, text } = dead_letters.filter;
    let (dry_run, filter) = (dead_letters.dry_run, BulkFilter { source, text });
    let (mut done, mut left, mut cursor) = (0, Vec::new(), None);
    loop {
        let body = BulkBody { action, filter: filter.clone(), dry_run, cursor };
        let answer: BulkView = client.post(&[PATH, "bulk"], HeaderMap::new(), &body).await?;
        done += answer.done;
        left.extend(answer.left);
        cursor = answer.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if shared.json {
        return Ok(output::json(&json!({"done": done, "left": left, "dry_run": dry_run}))?);
    }
    let prefix = if dry_run { "would have " } else { "" };
    output::line(format!("{prefix}{done_word} {done} dead letters"))?;
    if !left.is_empty() {
        let left = left.join(", ");
        output::line(format!("these are not Ebbflow messages and can only be discarded: {left}"))?;
    }
    Ok(())
}
