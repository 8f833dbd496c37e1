//! How many runs of a workflow go on at the same time: `concurrency`, or `max_active_runs` for short.

use model::{Concurrency, InputSpec, Overlap, Schedule};

use crate::diagnostic::Report;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::template::{self, Names};

/// What becomes of a run for which there is no room.
pub(crate) const POLICIES: [&str; 3] = ["queue", "cancel_previous", "skip"];
/// No limit may be higher.
pub(crate) const MAX_RUNS: u32 = 10_000;

/// Reads what a workflow says of runs beside each other. A schedule's `max_active_runs` is the same limit.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    inputs: &[InputSpec],
    schedule: Option<&Schedule>,
    report: &mut Report<'_>,
) -> Option<Concurrency> {
    let (whole, short) = (fields.get("concurrency"), fields.get("max_active_runs"));
    let scheduled = schedule.and_then(|schedule| schedule.max_active_runs);
    match (whole, short) {
        (Some(whole), Some(short)) => {
            let hint = Some("write `limit` within `concurrency`, and remove this".to_owned());
            report.add(&short.at, "`max_active_runs` is short for `concurrency`, and both stand here", hint);
            read_whole(whole, inputs, report)
        }
        (None, Some(short)) if scheduled.is_some() => {
            let hint = Some("remove it here or in `schedule`".to_owned());
            report.add(&short.at, "`max_active_runs` stands in `schedule`, too, and is the same limit", hint);
            None
        }
        (Some(whole), None) => read_whole(whole, inputs, report),
        (None, Some(short)) => read::whole(short, 1..=MAX_RUNS, report).map(queue),
        (None, None) => scheduled.map(queue),
    }
}

fn queue(limit: u32) -> Concurrency {
    Concurrency { key: None, limit, policy: Overlap::Queue }
}

fn read_whole(node: &Node, inputs: &[InputSpec], report: &mut Report<'_>) -> Option<Concurrency> {
    if let Data::Number(number) = &node.data {
        let hint = Some(format!("write {{limit: {number}}}"));
        report.add(
            &node.at,
            format!("`concurrency` must be a mapping, but this is {}", node.describe()),
            hint,
        );
        return None;
    }
    let mut fields = Fields::of(node, "`concurrency`", report)?;
    let key = fields.get("key").and_then(|node| read::text(node, report));
    let limit = fields.get("limit").map(|node| read::whole(node, 1..=MAX_RUNS, report));
    let policy = fields.get("policy").map(|node| read::choice(node, &POLICIES, report));
    fields.finish(report);
    key.iter().for_each(|key| check_key(*key, inputs, report));
    Some(Concurrency {
        key: key.map(|key| key.text.to_owned()),
        limit: limit.unwrap_or(Some(1))?,
        policy: policy.unwrap_or(Some(Overlap::default()))?,
    })
}

fn check_key(key: Word<'_>, inputs: &[InputSpec], report: &mut Report<'_>) {
    if template::is_template(key.text) {
        return template::check_word(key, &Names::of_run(inputs), report);
    }
    let hint = match key.text.split_once('.') {
        Some(("inputs" | "run", _)) => format!("write \"{{{{ {} }}}}\"", key.text),
        _ => "write such as \"{{ inputs.customer }}\", or leave `key` out".to_owned(),
    };
    report.add(key.at, "this key is the same for every run", Some(hint));
}
