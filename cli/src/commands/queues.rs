//! `ebb queues`: how many tasks wait in each queue, since when, and of which tenant.

use std::process::ExitCode;

use anyhow::Result;
use api::page::Page;
use api::queues::QueueView;

use super::connect;
use crate::args::Shared;
use crate::output;

pub(super) async fn run(shared: &Shared) -> Result<ExitCode> {
    let queues = Page { items: connect(shared)?.all::<QueueView>(&["queues"]).await?, next_cursor: None };
    output::print_list(
        shared,
        &queues,
        &queues.items,
        "no queues yet: a queue exists once a task needs it",
        table,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn table(queues: &[QueueView]) -> String {
    let head = ["QUEUE", "GROUP", "DEPTH", "OLDEST", "ACTIVE", "SLOTS", "RELEASED", "PER MINUTE"];
    let mut rows = Vec::new();
    for queue in queues {
        rows.push(vec![
            queue.name.clone(),
            String::new(),
            queue.depth.to_string(),
            queue.oldest.map(output::time).unwrap_or_default(),
            queue.active.to_string(),
            queue.slots.map_or_else(|| "unlimited".to_owned(), |slots| slots.to_string()),
            queue.released.to_string(),
            queue.rate.to_string(),
        ]);
        rows.extend(queue.fairness_groups.iter().map(|group| {
            let name = group.tenant.clone().unwrap_or_else(|| "another tenant".to_owned());
            let name = group.backfill.map_or(name, |backfill| format!("backfill {backfill}"));
            vec![
                String::new(),
                name,
                group.depth.to_string(),
                group.oldest.map(output::time).unwrap_or_default(),
                String::new(),
                String::new(),
                group.released.to_string(),
                group.rate.to_string(),
            ]
        }));
    }
    output::table(head, rows)
}
