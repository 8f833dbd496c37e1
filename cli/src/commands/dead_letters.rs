//! `ebb dead-letters`: messages that could not be processed.

use std::process::ExitCode;

use anyhow::Result;
use api::dead_letters::{Action, BulkBody, BulkFilter, BulkView, LetterView};
use api::page::Page;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{DeadLetters, LetterAction, LetterFilter, Letters, ListLetters, Shared};
use crate::output;

const PATH: &str = "dead-letters";

/// The default length of the list.
const DEFAULT_LIMIT: u32 = 20;

pub(super) async fn run(shared: &Shared, arguments: DeadLetters) -> Result<ExitCode> {
    let all = || LetterAction::List(ListLetters { filter: LetterFilter::default(), limit: DEFAULT_LIMIT });
    match arguments.action.unwrap_or_else(all) {
        LetterAction::List(wanted) => list(shared, wanted).await?,
        LetterAction::Show { id } => show(shared, &id).await?,
        LetterAction::Replay(letters) => act(shared, Action::Replay, letters).await?,
        LetterAction::Discard(letters) => act(shared, Action::Discard, letters).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(shared: &Shared, wanted: ListLetters) -> Result<()> {
    let mut query = vec![("limit", wanted.limit.to_string())];
    query.extend(wanted.filter.source.map(|source| ("source", source)));
    query.extend(wanted.filter.text.map(|text| ("text", text)));
    let page: Page<LetterView> = connect(shared)?.get(&[PATH], &query).await?;
    if shared.json {
        output::json(&page)?;
    } else if page.items.is_empty() {
        output::line("no dead letters")?;
    } else {
        output::line(table(&page.items))?;
    }
    Ok(())
}

fn table(letters: &[LetterView]) -> String {
    let head = ["ID", "AT", "SOURCE", "TYPE", "REASON"].map(String::from).to_vec();
    let rows = letters.iter().map(|letter| {
        vec![
            letter.id.clone(),
            output::time(letter.at),
            letter.source.clone(),
            letter.kind.clone().unwrap_or_else(|| "-".into()),
            output::first_line(&letter.reason).into(),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}

async fn show(shared: &Shared, id: &str) -> Result<()> {
    let letter: LetterView = connect(shared)?.get(&[PATH, id], &[]).await?;
    if shared.json {
        return Ok(output::json(&letter)?);
    }
    let kind = letter.kind.as_deref().unwrap_or("not one of our messages: it can only be discarded");
    let mut rows = vec![
        vec!["id".into(), letter.id],
        vec!["at".into(), output::time(letter.at)],
        vec!["source".into(), letter.source],
        vec!["reason".into(), letter.reason],
        vec!["type".into(), kind.into()],
    ];
    rows.extend(letter.run.map(|run| vec!["run".into(), run.to_string()]));
    output::line(output::table(&rows, |_, _, cell| cell))?;
    match letter.data {
        Some(data) => output::json(&data)?,
        None => output::line(letter.body.unwrap_or_default())?,
    }
    Ok(())
}

async fn act(shared: &Shared, action: Action, letters: Letters) -> Result<()> {
    let (verb, done) = match action {
        Action::Replay => ("replay", "replayed"),
        Action::Discard => ("discard", "discarded"),
    };
    let client = connect(shared)?;
    let Some(id) = &letters.id else { return act_on_all(shared, action, done, letters).await };
    let letter: LetterView = client.post(&[PATH, id, verb], HeaderMap::new(), &json!({})).await?;
    match shared.json {
        true => output::json(&letter)?,
        false => output::line(format!("{done} dead letter {id}"))?,
    }
    Ok(())
}

/// Repeats the request until none are left.
async fn act_on_all(shared: &Shared, action: Action, done_word: &str, letters: Letters) -> Result<()> {
    let client = connect(shared)?;
    let LetterFilter { source, text } = letters.filter;
    let (dry_run, filter) = (letters.dry_run, BulkFilter { source, text });
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
        output::line(format!("these are not our messages and can only be discarded: {left}"))?;
    }
    Ok(())
}
