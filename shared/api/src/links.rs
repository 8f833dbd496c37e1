//! Links to a run or a task: in the console, and on Google Cloud its logs and trace.

use chrono::{SecondsFormat, TimeDelta};
use model::{Instant, Run, RunId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::views::LinksView;

/// All but what RFC 3986 leaves unreserved: `;` above all, which separates parameters in these addresses.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const GOOGLE: &str = "https://console.cloud.google.com";

/// Log lines come in a little before and after the times that are kept.
const MARGIN: TimeDelta = TimeDelta::minutes(1);

/// The base addresses of links.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Links {
    /// The console's address without a slash at its end; empty where it is the one that is asked.
    pub base: String,
    /// The Google Cloud project that has the logs and traces; without one the console shows them.
    pub project: Option<String>,
}

impl Links {
    /// Links to the console at that address, which shows logs and traces itself.
    pub fn local(url: &str) -> Self {
        Self { base: url.trim_end_matches('/').into(), project: None }
    }

    /// The path of a run in the API.
    pub fn run_path(run: RunId) -> String {
        format!("/api/v1/runs/{run}")
    }

    /// The path of a task in the API.
    pub fn task_path(run: RunId, task: &str) -> String {
        format!("{}/tasks/{}", Self::run_path(run), encode(task))
    }

    /// The links of a run at `now`.
    pub fn of_run(&self, run: &Run, now: Instant) -> LinksView {
        let console = format!("{}/runs/{}", self.base, run.id);
        let filter = format!(r#"labels.runId="{}""#, run.id);
        LinksView {
            this: Self::run_path(run.id),
            logs: self.logs(&filter, run, now).unwrap_or_else(|| console.clone()),
            trace: self.trace(run.id).unwrap_or_else(|| console.clone()),
            console,
        }
    }

    /// Of a task of that run.
    pub fn of_task(&self, run: &Run, task: &str, now: Instant) -> LinksView {
        let name = encode(task);
        let console = format!("{}/runs/{}#{name}", self.base, run.id);
        let filter = format!(r#"labels.runId="{}" AND labels.task="{task}""#, run.id);
        let local = || format!("{}/runs/{}/tasks/{name}/log", self.base, run.id);
        LinksView {
            this: Self::task_path(run.id, task),
            logs: self.logs(&filter, run, now).unwrap_or_else(local),
            trace: self.trace(run.id).unwrap_or_else(|| console.clone()),
            console,
        }
    }

    /// Of an attempt at a task of that run.
    pub fn of_attempt(&self, run: &Run, task: &str, attempt: u32, now: Instant) -> LinksView {
        let filter =
            format!(r#"labels.runId="{}" AND labels.task="{task}" AND labels.attempt="{attempt}""#, run.id);
        let of_task = self.of_task(run, task, now);
        let local = || format!("{}?attempt={attempt}", of_task.logs);
        LinksView { logs: self.logs(&filter, run, now).unwrap_or_else(local), ..of_task.clone() }
    }

    /// The Logs Explorer with the question filled in, from the run's creation to its end.
    fn logs(&self, filter: &str, run: &Run, now: Instant) -> Option<String> {
        let project = encode(self.project.as_deref()?);
        let query = encode(&format!(r#"resource.type="cloud_run_revision" AND {filter}"#));
        let (from, to) = (run.created_at - MARGIN, run.finished_at.unwrap_or(now) + MARGIN);
        let range = format!("{}%2F{}", encode(&iso(from)), encode(&iso(to)));
        Some(format!("{GOOGLE}/logs/query;query={query};timeRange={range}?project={project}"))
    }

    fn trace(&self, run: RunId) -> Option<String> {
        let project = encode(self.project.as_deref()?);
        Some(format!("{GOOGLE}/traces/explorer;traceId={}?project={project}", run.trace_id()))
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn iso(instant: Instant) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use model::{RunState, TenantId, VersionId};

    use super::*;

    fn run() -> Run {
        let at = |second: i64| Instant::from_timestamp(1_800_000_000 + second, 0).unwrap();
        let id = "018f0000-0000-7000-8000-000000000001".parse().unwrap();
        Run {
            state: RunState::Succeeded,
            started_at: Some(at(0)),
            finished_at: Some(at(60)),
            ..Run::new(id, TenantId::DEFAULT, "hello", VersionId(1), 1, at(0))
        }
    }

    #[test]
    fn without_a_project_everything_leads_to_the_console() {
        let links = Links::local("http://localhost:8080/");
        let task = links.of_task(&run(), "load", run().created_at);
        assert_eq!(task.logs, format!("http://localhost:8080/runs/{}/tasks/load/log", run().id));
        assert_eq!(
            links.of_run(&run(), run().created_at).logs,
            format!("http://localhost:8080/runs/{}", run().id)
        );
    }

    #[test]
    fn with_a_project_logs_and_trace_are_googles_and_bounded_by_the_runs_life() {
        let links = Links { base: String::new(), project: Some("my-project".into()) };
        let run = links.of_run(&run(), run().created_at);
        insta::assert_snapshot!(run.logs, @"https://console.cloud.google.com/logs/query;query=resource.type%3D%22cloud_run_revision%22%20AND%20labels.runId%3D%22018f0000-0000-7000-8000-000000000001%22;timeRange=2027-01-15T07%3A59%3A00.000Z%2F2027-01-15T08%3A02%3A00.000Z?project=my-project");
        insta::assert_snapshot!(run.trace, @"https://console.cloud.google.com/traces/explorer;traceId=018f0000000070008000000000000001?project=my-project");
    }

    #[test]
    fn a_task_and_an_attempt_lead_to_their_own_lines_and_to_the_trace_of_their_run() {
        let links = Links { base: String::new(), project: Some("my-project".into()) };
        let asked = |link: &str| {
            let query = link.split_once("query;query=").and_then(|(_, rest)| rest.split_once(';')).unwrap().0;
            percent_encoding::percent_decode_str(query).decode_utf8().unwrap().into_owned()
        };
        let of_run = format!(r#"resource.type="cloud_run_revision" AND labels.runId="{}""#, run().id);
        let task = links.of_task(&run(), "load all", run().created_at);
        assert_eq!(asked(&task.logs), format!(r#"{of_run} AND labels.task="load all""#));
        let attempt = links.of_attempt(&run(), "load all", 3, run().created_at);
        let of_attempt = format!(r#"{of_run} AND labels.task="load all" AND labels.attempt="3""#);
        assert_eq!(asked(&attempt.logs), of_attempt);
        for link in [&task, &attempt] {
            assert_eq!(link.trace, links.of_run(&run(), run().created_at).trace);
            assert!(link.trace.contains(&run().id.trace_id()), "{}", link.trace);
            assert!(
                link.logs.contains(";timeRange=2027-01-15T07%3A59%3A00.000Z%2F2027-01-15T08%3A02"),
                "{}",
                link.logs
            );
        }
    }
}
