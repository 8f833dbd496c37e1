//! Lengths of time, cron patterns and time zones.

use calendar::Calendar;
use chrono::{DateTime, Utc};
use ebbflow_language::duration::Duration;
use ebbflow_language::{FileKind, SourceFile, compile};
use serde_json::json;

use crate::corpus::CORPUS;
use crate::harness::Target;
use crate::random::Random;
use crate::{mutate, words};

pub(crate) static TARGET: Target =
    Target { name: "durations_and_schedules_are_read", share: 7, make, check: |texts, _| check(texts) };

fn make(random: &mut Random) -> Vec<String> {
    vec![pattern(random), random.pick(words::TIMES).to_owned()]
}

fn pattern(random: &mut Random) -> String {
    let fields = if random.one_in(4) { random.below(9) } else { 5 };
    let mut field = || random.pick(words::TIMES).to_owned() + random.pick(&["", "", "", ",1", "-3", "/2"]);
    let written = (0..fields).map(|_| field()).collect::<Vec<_>>().join(" ");
    match random.below(3) {
        0 => mutate::text(written, &CORPUS.texts, words::TIMES, random),
        _ => written,
    }
}

fn check(texts: &[String]) {
    for text in texts {
        if let Ok(duration) = text.parse::<Duration>() {
            assert!(duration.to_std().as_secs() <= 3660 * 86_400);
        }
    }
    for timezone in ["Europe/Berlin", &texts[1], &texts[0]] {
        schedule(json!({"cron": texts[0], "timezone": timezone}));
    }
}

fn schedule(schedule: serde_json::Value) {
    let text = format!("name: a\ntasks: [{{name: x, type: noop}}]\nschedule: {schedule}");
    let file = SourceFile { path: "inline".to_owned(), kind: FileKind::Workflow, text };
    for definition in compile(&[file]).definitions {
        let schedule = &definition.workflow.schedules[0];
        let calendar = Calendar::of(schedule).unwrap();
        let from: DateTime<Utc> = "2026-01-31T18:00:00Z".parse().unwrap();
        let next = calendar.after(from).expect("what compiles comes true");
        assert!(
            next > from && calendar.before(next).is_none_or(|last| last <= from),
            "{:?} goes back",
            schedule.when
        );
    }
}
