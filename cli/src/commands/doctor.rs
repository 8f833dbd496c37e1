//! `ebb doctor`: checks the health of the system, and suggests what to do.

use std::process::ExitCode;

use anyhow::Result;
use api::doctor::{CheckView, ReportView, Verdict};
use bus::SystemClock;
use chrono::TimeDelta;
use model::{Clock, Instant};
use reqwest::header::HeaderMap;
use serde_json::json;

use super::{FAILED, connect};
use crate::args::{Doctor, Shared};
use crate::client::{self, Client};
use crate::cloud::{Cloud, checks};
use crate::output::{self, Colour, Palette};

/// The maximum difference between the server's clock and the local one.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::seconds(5);

pub(super) async fn run(shared: &Shared, arguments: &Doctor) -> Result<ExitCode> {
    let sent = SystemClock.now();
    let mut report = match fetch(&connect(shared)?, arguments.repair).await {
        Ok(report) => with_local_clock(report, sent, SystemClock.now()),
        Err(error) => no_report(&error, SystemClock.now()),
    };
    if arguments.cloud {
        let cloud = Cloud::connect(&arguments.place).await?;
        let (instance, backups) = (cloud.instance().await?, cloud.backups().await?);
        report.checks.extend(checks(&instance, &backups, SystemClock.now()));
        report.ok = report.checks.iter().all(|check| check.verdict == Verdict::Ok);
    }
    output::print(shared, &report, || text(&report, Palette::of_stdout()))?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

async fn fetch(client: &Client, repair: bool) -> client::Result<ReportView> {
    match repair {
        true => client.post(&["doctor", "repair"], HeaderMap::new(), &json!({})).await,
        false => client.get(&["doctor"], &[]).await,
    }
}

/// Adds a check of the local clock, by which the request was sent and answered at these times.
fn with_local_clock(mut report: ReportView, sent: Instant, answered: Instant) -> ReportView {
    let skew = model::clock::difference(report.now, sent..=answered);
    let message = format!("the server's clock differs from the local one by {} ms", skew.num_milliseconds());
    let is_ok = skew <= MAX_CLOCK_SKEW;
    let check = CheckView::new("local clock", is_ok, message, "synchronize this machine's clock with NTP");
    report.ok &= check.verdict == Verdict::Ok;
    report.checks.push(check);
    report
}

/// The report if the server did not send one.
fn no_report(error: &client::Error, now: Instant) -> ReportView {
    let (name, advice) = match error {
        client::Error::Rejected { status: 401 | 403, .. } => (
            "identity",
            "check that EBB_TOKEN is valid and has not expired; `ebb token` prints the token of `ebb dev`",
        ),
        client::Error::Rejected { status: 500.., .. } => {
            ("database", "check the database, and the server's log")
        }
        _ => ("server", "check that `ebb dev` is running, or that EBB_URL is the server's address"),
    };
    let check = CheckView::new(name, false, error.to_string(), advice);
    ReportView { ok: false, now, checks: vec![check], complete: false, repaired: Vec::new() }
}

fn text(report: &ReportView, palette: Palette) -> String {
    let repaired = report.repaired.iter().map(|check| {
        format!("{} repaired {}: {}", palette.paint(Colour::Good, "↻"), check.name, check.message)
    });
    let checks = report.checks.iter().map(|check| line(check, palette));
    let more =
        (!report.complete && report.checks.len() > 1).then(|| "not all unfinished runs were checked".into());
    repaired.chain(checks).chain(more).collect::<Vec<String>>().join("\n")
}

fn line(check: &CheckView, palette: Palette) -> String {
    let (sign, colour) = match check.verdict {
        Verdict::Ok => ("✓", Colour::Good),
        Verdict::Wrong => ("✗", Colour::Bad),
    };
    let advice = check.advice.as_ref().map(|advice| format!("\n    {advice}")).unwrap_or_default();
    format!("{} {}: {}{advice}", palette.paint(colour, sign), check.name, check.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        Instant::from_timestamp(1_800_000_000, 0).unwrap()
    }

    #[test]
    fn an_unreachable_server_is_reported_with_advice() {
        let away = client::Error::Unreachable { url: "http://x".into(), why: "refused".into() };
        let report = no_report(&away, now());
        assert!(!report.ok);
        let text = text(&report, Palette { on: false });
        assert!(
            text.starts_with("✗ server: no response from http://x") && text.contains("EBB_URL"),
            "{text}"
        );
    }

    #[test]
    fn a_clock_that_is_off_is_wrong() {
        let report = ReportView { ok: true, now: now(), checks: vec![], complete: true, repaired: vec![] };
        let too_much = MAX_CLOCK_SKEW + TimeDelta::seconds(1);
        let checked = |sent, answered| with_local_clock(report.clone(), now() + sent, now() + answered);
        assert!(checked(MAX_CLOCK_SKEW, MAX_CLOCK_SKEW).ok);
        for off in [checked(too_much, too_much), checked(-too_much, -too_much)] {
            assert!(!off.ok && off.checks[0].advice.is_some());
        }
        let slow = checked(-too_much, too_much);
        assert!(slow.ok, "a slow request says nothing about the clocks: {}", slow.checks[0].message);
    }
}
