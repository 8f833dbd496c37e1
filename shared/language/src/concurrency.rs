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

/// Reads what a workflow says of runs beside each other. The limit of its only schedule is the same limit; of several
/// schedules, each may have its own.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    inputs: &[InputSpec],
    schedules: &[Schedule],
    report: &mut Report<'_>,
) -> Option<Concurrency> {
    let (whole, short) = (fields.get("concurrency"), fields.get("max_active_runs"));
    let limited = |schedule: &&Schedule| schedule.max_active_runs.is_some() || schedule.overlap.is_some();
    let scheduled = schedules.iter().find(limited);
    match (whole, short) {
        (Some(node), _) | (_, Some(node)) if schedules.len() > 1 && scheduled.is_some() => {
            let hint = Some("remove it here or in the schedules".to_owned());
            report.add(&node.at, "schedules have limits of their own, so their runs cannot share one", hint);
            None
        }
        (Some(whole), Some(short)) => {
            let hint = Some("write `limit` within `concurrency`, and remove this".to_owned());
            report.add(&short.at, "`max_active_runs` is short for `concurrency`; use one of the two", hint);
            read_whole(whole, inputs, report)
        }
        (None, Some(short)) if scheduled.is_some() => {
            let hint = Some("remove it here or in `schedule`".to_owned());
            report.add(
                &short.at,
                "`max_active_runs` is already set in `schedule`, and is the same limit",
                hint,
            );
            None
        }
        (Some(whole), None) => read_whole(whole, inputs, report),
        (None, Some(short)) => {
            read::whole(short, 1..=MAX_RUNS, report).map(|limit| limited_to(limit, Overlap::Queue))
        }
        (None, None) if schedules.len() > 1 => None,
        (None, None) => scheduled.map(|schedule| {
            limited_to(schedule.max_active_runs.unwrap_or(1), schedule.overlap.unwrap_or_default())
        }),
    }
}

fn limited_to(limit: u32, policy: Overlap) -> Concurrency {
    Concurrency { key: None, limit, policy }
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
        _ => "write, for example, \"{{ inputs.customer }}\", or leave `key` out".to_owned(),
    };
    report.add(key.at, "this key is the same for every run", Some(hint));
}
