//! Fan-outs and their children: progress, and which child is next.

use model::{Child, EventKind, Fan, FanOut, Task, TaskState, Tolerance};
use serde_json::{Value, json};

use super::{Explained, Story, words};
use crate::views::ChildrenView;

/// A fan-out that waits for its children.
pub(super) fn fanned_out(story: &Story<'_>, task: &Task, fan: Fan) -> Explained {
    let since = story.moment(task.since);
    let mut because = format!("Since {since} it has {}: {}", words::children(fan.total), tallied(fan));
    if let Some(plan) = &story.spec(task.index).fan_out {
        because += &outlook(plan, fan);
    }
    if let Some(failure) = story.failure(task.index) {
        because += &format!(" The first to fail was {}.", words::failure(failure));
    }
    Explained::new(because, children_in_numbers(story, task, fan))
}

fn children_in_numbers(story: &Story<'_>, task: &Task, fan: Fan) -> Value {
    let plan = story.spec(task.index).fan_out.as_ref();
    json!({
        "children": ChildrenView::from(fan),
        "max_parallel": plan.and_then(|plan| plan.max_parallel),
        "tolerated_failures": plan.map(|plan| plan.tolerated_failures),
        "first_failure": story.failure(task.index),
    })
}

/// A child of a fan-out that has not begun.
pub(super) fn before_its_turn(story: &Story<'_>, child: Child) -> Explained {
    let name = story.name(child.of);
    let fan = story.tasks.get(&child.of).and_then(|task| task.fan);
    let cap = story.spec(child.of).fan_out.as_ref().and_then(|plan| plan.max_parallel);
    let Some((fan, cap)) = fan.zip(cap) else {
        return Explained::new("The next recheck of the run starts it.", json!({"fan_out": name}));
    };
    let before = child.item.saturating_sub(fan.released);
    let because = format!(
        "Its turn has not come: at most {} of `{name}` run at once (`max_parallel`). {} active, \
         and {} before it.",
        words::children(cap),
        are(active(fan)),
        if before == 1 { "1 more comes".to_owned() } else { format!("{before} more come") },
    );
    Explained::new(because, json!({"fan_out": name, "max_parallel": cap, "before": before}))
}

/// Why a child was skipped, if its fan-out failed before it started.
pub(super) fn not_needed(story: &Story<'_>, task: &Task, child: Child) -> Option<(String, Value)> {
    story.data(task.index, EventKind::TaskSkipped)["fan_out"].as_str()?;
    let (name, fan) = (story.name(child.of), story.tasks.get(&child.of)?.fan?);
    let plan = story.spec(child.of).fan_out.as_ref()?;
    let because = format!(
        "It was no longer needed: {} of {} of `{name}` failed, and {} (`tolerated_failures`).",
        fan.ended.failed,
        words::children(fan.total),
        may_fail(plan.tolerated_failures),
    );
    Some((because, json!({"fan_out": name, "children": ChildrenView::from(fan)})))
}

/// What a fan-in combines, as the end of an explanation.
pub(super) fn fan_in(story: &Story<'_>, task: &Task) -> Option<String> {
    let fan_in = story.spec(task.index).fan_in.as_ref()?;
    let over = |index: &_| story.spec(*index).fan_out.is_some();
    let fans: Vec<_> = story.parents(task.index).filter(over).collect();
    let how = serde_json::to_value(fan_in.aggregation).ok()?;
    let of = fan_in.field.as_ref().map(|field| format!(" of `{field}`")).unwrap_or_default();
    let names = story.names(&fans);
    Some(format!(" It combines the outputs of the children of {names}: `{}`{of}.", how.as_str()?))
}

/// The progress of a fan-out, for a list; none for other tasks.
pub(super) fn progress(task: &Task) -> Option<String> {
    let fan = task.fan.filter(|_| task.state == TaskState::Sleeping)?;
    Some(format!("{} of {} ended", fan.ended.done, words::children(fan.total)))
}

fn active(fan: Fan) -> u32 {
    fan.released.saturating_sub(fan.ended.done)
}

/// How many children are in which state, as a sentence.
fn tallied(fan: Fan) -> String {
    let ended = fan.ended;
    let each = [(ended.succeeded, "succeeded"), (ended.failed, "failed"), (ended.skipped, "skipped")];
    let each: Vec<String> =
        each.iter().filter(|(count, _)| *count > 0).map(|(count, how)| format!("{count} {how}")).collect();
    let how = if each.is_empty() { String::new() } else { format!(" ({})", words::list(each)) };
    let have = if ended.done == 1 { "has" } else { "have" };
    let waiting = fan.total - fan.released;
    let turn = match waiting {
        0 => String::new(),
        1 => " and 1 waits".to_owned(),
        _ => format!(" and {waiting} wait"),
    };
    format!("{} {have} ended{how}, {} active{turn}.", ended.done, are(active(fan)))
}

/// How the limits of a fan-out affect the rest of its children.
fn outlook(plan: &FanOut, fan: Fan) -> String {
    let waiting = fan.total - fan.released;
    let cap = plan.max_parallel.filter(|_| waiting > 0);
    let cap = cap.map(|cap| format!(" At most {cap} run at once (`max_parallel`)."));
    let lost = !plan.tolerated_failures.allows(fan.ended.failed, fan.total);
    let failures = match fan.ended.failed {
        0 => String::new(),
        _ if lost => format!(
            " It fails once all have ended, since {} (`tolerated_failures`).",
            may_fail(plan.tolerated_failures)
        ),
        _ => format!(
            " It may still succeed, since {} (`tolerated_failures`).",
            may_fail(plan.tolerated_failures)
        ),
    };
    cap.unwrap_or_default() + &failures
}

fn are(count: u32) -> String {
    if count == 1 { "1 is".into() } else { format!("{count} are") }
}

fn may_fail(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Count(0) => "none may".into(),
        Tolerance::Count(count) => format!("at most {count} may"),
        Tolerance::Percent(percent) => format!("at most {percent}% may"),
    }
}
