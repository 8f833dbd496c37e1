//! The small words of explanations: lists, moments, failures, values, rules.

use chrono::TimeDelta;
use model::{ErrorClass, Failure, Instant, Limit, TaskState, TriggerRule};
use serde_json::Value;

/// The maximum number of names in a sentence.
const MAX_NAMES: usize = 5;

/// No quoted message or value is longer, in characters.
const MAX_QUOTE: usize = 200;

/// `a`, `b` and 3 more.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    if items.len() > MAX_NAMES {
        let more = items.len() - MAX_NAMES;
        items.truncate(MAX_NAMES);
        items.push(format!("{more} more"));
    }
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
        None => "nothing".into(),
    }
}

/// A limit that a task needs a slot of.
pub(super) fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Breaker(_, name) => format!("the circuit breaker of `{name}`"),
        Limit::Pool(_, name) => format!("the pool `{name}`"),
        Limit::Queue(name) => format!("the queue `{name}`"),
        Limit::Workflow(_, name) => format!("the workflow `{name}` (its `max_active_tasks`)"),
        Limit::Tenant(_) => "the tenant".to_owned(),
    }
}

/// How many waiting tasks or runs come before one.
pub(super) fn ahead(count: usize) -> String {
    match count {
        0 => "it is next".to_owned(),
        1 => "1 other comes before it".to_owned(),
        count => format!("{count} others come before it"),
    }
}

/// One task, two tasks.
pub(super) fn tasks(count: usize) -> String {
    if count == 1 { "1 task".into() } else { format!("{count} tasks") }
}

/// One child, two children.
pub(super) fn children(count: u32) -> String {
    if count == 1 { "1 child".into() } else { format!("{count} children") }
}

/// Once, twice, three times.
pub(super) fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}

/// An instant, and how far from now it is.
pub(super) fn moment(at: Instant, now: Instant) -> String {
    let distance = match at - now {
        zero if zero.abs() < TimeDelta::seconds(1) => "now".into(),
        ahead if ahead > TimeDelta::zero() => format!("in {}", span(ahead)),
        behind => format!("{} ago", span(-behind)),
    };
    format!("{} ({distance})", at.format("%Y-%m-%d %H:%M:%SZ"))
}

/// A length of time in its two largest units.
pub(super) fn span(span: TimeDelta) -> String {
    let seconds = span.num_seconds();
    let in_units = |large: i64, large_name: &str, small: i64, small_name: &str| {
        let first = format!("{} {large_name}", seconds / large);
        match seconds % large / small {
            0 => first,
            rest => format!("{first} {rest} {small_name}"),
        }
    };
    match seconds {
        ..1 => format!("{} ms", span.num_milliseconds().max(0)),
        1..60 => format!("{seconds} s"),
        60..3_600 => in_units(60, "min", 1, "s"),
        3_600..86_400 => in_units(3_600, "h", 60, "min"),
        _ => in_units(86_400, "d", 3_600, "h"),
    }
}

pub(super) fn state(state: TaskState) -> String {
    state.name().replace('_', " ")
}

/// The error of an attempt, and its class.
pub(super) fn failure(failure: &Failure) -> String {
    let class = match failure.class {
        ErrorClass::ProgramFailed => "its program failed",
        ErrorClass::Transient => "a transient error",
        ErrorClass::Permanent => "a permanent error",
        ErrorClass::Killed => "killed from outside",
        ErrorClass::WorkerLost => "its worker was lost",
        ErrorClass::Timeout => "a time-out",
        ErrorClass::OutcomeUnknown => "its outcome is unknown",
        ErrorClass::NotTaken => "no worker took it",
    };
    format!("{} ({class})", quote(&failure.message))
}

/// The same, out of the data of an event.
pub(super) fn failure_in(data: &Value) -> String {
    let found = serde_json::from_value::<Failure>(data.clone());
    found.map_or_else(|_| "no reason was given".into(), |found| failure(&found))
}

/// The values that an expression saw: `inputs.size` was 3.
pub(super) fn values(seen: &Value) -> Option<String> {
    let seen = seen.as_object().filter(|seen| !seen.is_empty())?;
    Some(list(seen.iter().map(|(name, value)| format!("`{name}` was {}", quote(&value.to_string())))))
}

/// A condition and the values it saw.
pub(super) fn condition(data: &Value) -> String {
    let condition = quote(data["condition"].as_str().unwrap_or_default());
    match values(&data["seen"]) {
        Some(seen) => format!("`{condition}` ({seen})"),
        None => format!("`{condition}`"),
    }
}

/// The first line of a text, as far as there is room for it; a full stop at its end would be one too many.
pub(super) fn quote(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.trim_end_matches('.').into(),
    }
}

/// What a trigger rule asks for; nothing for the one that everybody expects.
pub(super) fn rule(rule: TriggerRule) -> Option<String> {
    use TriggerRule as R;
    let (name, asks) = match rule {
        R::AllSuccess => return None,
        R::AllFailed => ("all_failed", "all of them must fail"),
        R::AllDone => ("all_done", "all of them must end, however they do"),
        R::OneSuccess => ("one_success", "one of them must succeed, the others are not waited for"),
        R::OneFailed => ("one_failed", "one of them must fail, the others are not waited for"),
        R::NoneFailed => ("none_failed", "all of them must end and none may fail"),
        R::NoneFailedMinOneSuccess => {
            ("none_failed_min_one_success", "all of them must end, none may fail and one must succeed")
        }
        R::NoneSkipped => ("none_skipped", "all of them must end and none may be skipped"),
        R::Always => ("always", "it does not matter what becomes of them"),
        R::AnyOf => ("any_of", "all of them must end and one must succeed"),
    };
    Some(format!("Its rule for the tasks it depends on is `{name}`: {asks}."))
}

/// A word as a shell takes it for one.
pub(super) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_list_names_five_and_counts_the_rest() {
        let names = |count: usize| list((1..=count).map(|number| number.to_string()));
        assert_eq!([1, 2, 3].map(names), ["1", "1 and 2", "1, 2 and 3"]);
        assert_eq!(names(5), "1, 2, 3, 4 and 5");
        assert_eq!(names(9), "1, 2, 3, 4, 5 and 4 more");
    }

    #[test]
    fn a_moment_has_its_time_and_its_distance_from_now() {
        let now = Instant::from_timestamp(1_800_000_000, 0).unwrap();
        for (seconds, expected) in [
            (0, "2027-01-15 08:00:00Z (now)"),
            (59, "2027-01-15 08:00:59Z (in 59 s)"),
            (-90, "2027-01-15 07:58:30Z (1 min 30 s ago)"),
            (7_200, "2027-01-15 10:00:00Z (in 2 h)"),
            (7_260, "2027-01-15 10:01:00Z (in 2 h 1 min)"),
            (90_000, "2027-01-16 09:00:00Z (in 1 d 1 h)"),
        ] {
            assert_eq!(moment(now + TimeDelta::seconds(seconds), now), expected);
        }
    }

    #[test]
    fn a_quote_is_one_line_of_bounded_length() {
        assert_eq!(failure(&Failure::transient("no luck.\nat line 3")), "no luck (a transient error)");
        assert_eq!(quote(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
    }

    #[test]
    fn a_condition_has_the_values_it_saw() {
        let data = json!({"condition": "inputs.n > 3", "seen": {"inputs.n": 1, "inputs.who": "Ada"}});
        assert_eq!(condition(&data), "`inputs.n > 3` (`inputs.n` was 1 and `inputs.who` was \"Ada\")");
        assert_eq!(condition(&json!({"condition": "false", "seen": {}})), "`false`");
    }

    #[test]
    fn a_word_that_a_shell_would_not_take_for_one_is_quoted() {
        assert_eq!(
            ["paid", "a b", "it's", "-f", ""].map(shell),
            ["paid", "'a b'", r"'it'\''s'", "'-f'", "''"]
        );
    }
}
