//! How many runs of a workflow are active at the same time: `concurrency`, or `max_active_runs` for short.

use model::{Concurrency, InputSpec, Overlap, Schedule};

use crate::diagnostic::Report;
use crate::inputs::InputNames;
use crate::node::{Data, Node};
use crate::read::Word;
use crate::shape::{Given, Record, choice, record, template, whole};
use crate::template::{self, Names};

/// The treatment of a run beyond the limit.
pub(crate) const POLICIES: [&str; 3] = ["queue", "cancel_previous", "skip"];
/// The highest limit of active runs.
pub(crate) const MAX_RUNS: u32 = 10_000;

record! {
    /// The fields of `concurrency`, as written.
    pub(crate) struct ConcurrencyParts<'n> as "`concurrency`" {
        /// Runs with the same key are counted together, such as `{{ inputs.customer }}`.
        key: Word<'n> = template(),
        /// The maximum number of active runs; default 1.
        limit: u32 = whole(1..=MAX_RUNS),
        /// The treatment of a run beyond the limit: it waits (`queue`), cancels earlier ones
        /// (`cancel_previous`) or is not created (`skip`).
        policy: Overlap = choice(&POLICIES),
    }
}

/// Reads the limit of a workflow. The limit of its only schedule is the same limit; of several schedules, each may have
/// its own.
pub(crate) fn read(
    whole: Option<&Node>,
    short: Option<Given<'_, u32>>,
    inputs: &[InputSpec],
    schedules: &[Schedule],
    report: &mut Report<'_>,
) -> Option<Concurrency> {
    let limited = |schedule: &&Schedule| schedule.max_active_runs.is_some() || schedule.overlap.is_some();
    let scheduled = schedules.iter().find(limited);
    if let (Some(at), true, true) =
        (whole.map(|node| &node.at).or(short.map(|short| short.at)), schedules.len() > 1, scheduled.is_some())
    {
        let hint = Some("remove it here or in the schedules".to_owned());
        report.add(at, "schedules have limits of their own, so their runs cannot share one", hint);
        return None;
    }
    match (whole, short) {
        (Some(whole), short) => {
            if let Some(short) = short {
                let hint = Some("write `limit` within `concurrency`, and remove this".to_owned());
                let message = "`max_active_runs` is short for `concurrency`; use one of the two";
                report.add(short.at, message, hint);
            }
            read_whole(whole, inputs, report)
        }
        (None, Some(short)) if scheduled.is_some() => {
            let hint = Some("remove it here or in `schedule`".to_owned());
            let message = "`max_active_runs` is already set in `schedule`, and is the same limit";
            report.add(short.at, message, hint);
            None
        }
        (None, Some(short)) => short.value.map(|limit| limited_to(limit, Overlap::Queue)),
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
        let message = format!("`concurrency` must be a mapping, but this is {}", node.describe());
        report.add(&node.at, message, hint);
        return None;
    }
    let parts = ConcurrencyParts::read(node, report)?;
    parts.key.iter().for_each(|key| check_key(*key, inputs, report));
    Some(Concurrency {
        key: parts.key.map(|key| key.text.to_owned()),
        limit: parts.limit.unwrap_or(1),
        policy: parts.policy.unwrap_or_default(),
    })
}

fn check_key(key: Word<'_>, inputs: &[InputSpec], report: &mut Report<'_>) {
    if template::is_template(key.text) {
        return template::check_word(key, &Names::of_run(&InputNames::of(inputs)), report);
    }
    let hint = match key.text.split_once('.') {
        Some(("inputs" | "run", _)) => format!("write \"{{{{ {} }}}}\"", key.text),
        _ => "write, for example, \"{{ inputs.customer }}\", or leave `key` out".to_owned(),
    };
    report.add(key.at, "this key is the same for every run", Some(hint));
}
