//! How long the platform lets requests and attempts take.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Config, Reader};

/// How long before the platform's limit work ends itself, to record its result.
const MARGIN_SECONDS: u32 = 15;

impl Config {
    /// How long work in a request may take: the platform's limit without the margin. None without such a limit.
    pub fn request_limit(&self) -> Option<Duration> {
        self.request_seconds.map(|seconds| Duration::from_secs(usable(seconds).into()))
    }

    /// How many seconds an attempt may take on each queue that has a limit.
    pub fn attempt_seconds(&self) -> BTreeMap<String, u32> {
        self.queue_seconds.iter().map(|(queue, seconds)| (queue.clone(), usable(*seconds))).collect()
    }
}

fn usable(seconds: u32) -> u32 {
    seconds.saturating_sub(MARGIN_SECONDS)
}

impl Reader<'_> {
    pub(super) fn request_seconds(&mut self) -> Option<u32> {
        let text = self.optional("EBB_REQUEST_SECONDS")?;
        let seconds = limit(&text);
        if seconds.is_none() {
            self.problems
                .push(format!("EBB_REQUEST_SECONDS is `{text}`; it must be more than {MARGIN_SECONDS}"));
        }
        seconds
    }

    pub(super) fn queue_seconds(&mut self) -> BTreeMap<String, u32> {
        let text = self.optional("EBB_QUEUE_SECONDS").unwrap_or_default();
        let mut limits = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let read = entry.split_once('=').and_then(|(queue, seconds)| Some((queue, limit(seconds)?)));
            match read {
                Some((queue, seconds)) => drop(limits.insert(queue.to_owned(), seconds)),
                None => self.problems.push(format!(
                    "EBB_QUEUE_SECONDS: `{entry}` is not of the form QUEUE=SECONDS with more than {MARGIN_SECONDS} seconds"
                )),
            }
        }
        limits
    }
}

/// A limit that leaves time to work.
fn limit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|seconds| *seconds > MARGIN_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    const BASE: [(&str, &str); 3] =
        [("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];

    #[test]
    fn work_ends_before_the_platform_ends_it() {
        let unlimited = read(&BASE).unwrap();
        assert_eq!((unlimited.request_limit(), unlimited.attempt_seconds().len()), (None, 0));
        let given = [("EBB_REQUEST_SECONDS", "600"), ("EBB_QUEUE_SECONDS", "heavy=3600, light=600")];
        let limited = read(&[&BASE[..], &given].concat()).unwrap();
        assert_eq!(limited.request_limit(), Some(Duration::from_secs(585)));
        let queues = limited.attempt_seconds();
        assert_eq!(queues, BTreeMap::from([("heavy".into(), 3585), ("light".into(), 585)]));
    }

    #[test]
    fn a_limit_that_leaves_no_time_is_rejected() {
        let given = [("EBB_REQUEST_SECONDS", "15"), ("EBB_QUEUE_SECONDS", "heavy,light=9,a=x")];
        let problems = read(&[&BASE[..], &given].concat()).unwrap_err().to_string();
        for part in ["EBB_REQUEST_SECONDS is `15`", "`heavy`", "`light=9`", "`a=x`"] {
            assert!(problems.contains(part), "{part} is missing in:\n{problems}");
        }
    }
}
