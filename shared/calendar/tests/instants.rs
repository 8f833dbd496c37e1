//! Patterns in time zones against instants that another program worked out: see `instants.py`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use chrono::{Datelike, TimeDelta};
use chrono_tz::Tz;
use ebbflow_calendar::{Calendar, Pattern};
use model::Instant;
use proptest::prelude::*;

fn calendar(pattern: &str, zone: &str) -> Calendar {
    Calendar::cron(pattern.parse().unwrap(), zone.parse().unwrap())
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

#[test]
fn every_pattern_means_the_instants_that_were_worked_out_apart() {
    let table: serde_json::Value = serde_json::from_str(include_str!("instants.json")).unwrap();
    let cases = table.as_array().unwrap();
    assert!(cases.len() >= 200);
    for case in cases {
        let text = |field: &str| case[field].as_str().unwrap();
        let calendar = calendar(text("cron"), text("zone"));
        let expected: Vec<Instant> =
            case["next"].as_array().unwrap().iter().map(|one| at(one.as_str().unwrap())).collect();
        let found: Vec<Instant> = calendar.following(at(text("from"))).take(expected.len()).collect();
        assert_eq!(found, expected, "{} in {} from {}", text("cron"), text("zone"), text("from"));
        // And the same on the way back.
        for pair in expected.windows(2) {
            assert_eq!(calendar.before(pair[1]), Some(pair[0]), "{} in {}", text("cron"), text("zone"));
            assert_eq!(calendar.interval(pair[1]).start, pair[0]);
        }
    }
}

#[test]
fn a_job_in_the_spring_gap_runs_at_the_shifted_time() {
    let new_york = calendar("30 2 * * *", "America/New_York");
    assert_eq!(new_york.after(at("2026-03-08T00:00:00Z")), Some(at("2026-03-08T07:30:00Z")), "03:30 there");
    let lord_howe = calendar("15 2 * * *", "Australia/Lord_Howe");
    assert_eq!(lord_howe.after(at("2026-10-03T12:00:00Z")), Some(at("2026-10-03T15:45:00Z")), "02:45 there");
}

#[test]
fn a_pattern_that_never_comes_is_found_out() {
    for pattern in ["0 0 30 2 *", "0 0 30W 2 *"] {
        let never = calendar(pattern, "Europe/Berlin");
        assert_eq!(
            (never.after(at("2026-01-01T00:00:00Z")), never.before(at("2026-01-01T00:00:00Z"))),
            (None, None)
        );
    }
    // Rare is not never: a leap day that is the fifth Monday of its month.
    let rare = calendar("0 0 * 2 MON#5", "UTC");
    assert_eq!(rare.after(at("2072-03-01T00:00:00Z")).map(|at| at.year()), Some(2112));
}

#[test]
fn seconds_may_come_first() {
    let often = calendar("*/20 59 23 * * *", "Asia/Kolkata");
    let found: Vec<Instant> = often.following(at("2026-01-01T18:29:10Z")).take(3).collect();
    assert_eq!(found, [at("2026-01-01T18:29:20Z"), at("2026-01-01T18:29:40Z"), at("2026-01-02T18:29:00Z")]);
}

#[test]
fn a_day_that_a_zone_left_out_is_made_up_for_by_the_next() {
    // Samoa had no 30 December 2011.
    let daily = calendar("0 10 * * *", "Pacific/Apia");
    let found: Vec<Instant> = daily.following(at("2011-12-29T00:00:00Z")).take(3).collect();
    assert_eq!(found, [at("2011-12-29T20:00:00Z"), at("2011-12-30T20:00:00Z"), at("2011-12-31T20:00:00Z")]);
}

#[test]
fn what_is_no_pattern_is_refused_with_all_its_mistakes() {
    let mistakes = Pattern::read("61 * 0 FOO 1-0").unwrap_err();
    let messages: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "`61` is not a valid minute of a cron pattern",
            "`0` is not a valid day of the month of a cron pattern",
            "`FOO` is not a valid month of a cron pattern",
        ]
    );
    assert_eq!(mistakes[1].at, 5..6);
    for pattern in [
        "* * * *",
        "@reboot",
        "* * * * L",
        "1-2-3 * * * *",
        "*/0 * * * *",
        "*/61 * * * *",
        ", * * * *",
        "0 0 15-16W * *",
        "0 0 * * FRI#6",
        "0 0 * * 1-3#2",
        "-1 * * * *",
        "5-1 * * * *",
        "+5 * * * *",
    ] {
        assert!(Pattern::read(pattern).is_err(), "{pattern}");
    }
}

proptest! {
    /// Instants are in order, strictly, and nothing lies between two of them.
    #[test]
    fn the_next_instant_is_the_one_whose_last_is_this_one(
        pattern in prop::sample::select(vec![
            "*/7 * * * *", "30 1,2 * * *", "0 */3 31 * *", "15 2 * * SUN", "0 0 LW * *", "0 12 13 * FRI#2", "1 0 29 2 *",
        ]),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran"]),
        seconds in 1_000_000_000_i64..2_500_000_000,
    ) {
        let zone: Tz = zone.parse().unwrap();
        let calendar = Calendar::cron(pattern.parse().unwrap(), zone);
        let from = Instant::from_timestamp(seconds, 0).unwrap();
        let next = calendar.after(from).unwrap();
        prop_assert!(next > from);
        let last = calendar.before(next).unwrap();
        prop_assert!(last <= from);
        prop_assert_eq!(calendar.after(last), Some(next));
        prop_assert_eq!(calendar.before(next + TimeDelta::microseconds(1)), Some(next));
    }
}
