//! How long the platform lets requests and attempts take, and how many connections to the database there are.

use std::collections::BTreeMap;
use std::time::Duration;

use model::message::CALLBACK_QUEUE;
use model::{InstalledQueue, Queues};
use store::Connections;

use super::{Config, Reader};

/// How long before the platform's limit work ends itself, to record its result.
const MARGIN_SECONDS: u32 = 15;

impl Config {
    /// How long work in a request may take: the platform's limit without the margin. None without such a limit.
    pub fn request_limit(&self) -> Option<Duration> {
        self.request_seconds.map(|seconds| Duration::from_secs(usable(seconds).into()))
    }

    /// The queues of the installation, with how many seconds an attempt may take on each that has a limit.
    pub fn queues(&self) -> Queues {
        let usable = |queue: &InstalledQueue| match queue {
            InstalledQueue::Service(seconds) => InstalledQueue::Service(seconds.map(usable)),
            InstalledQueue::Pool => InstalledQueue::Pool,
        };
        match &self.listed_queues {
            Some(listed) => {
                Queues::listed(listed.iter().map(|(name, queue)| (name.clone(), usable(queue))).collect())
            }
            None => Queues::default(),
        }
    }
}

fn usable(seconds: u32) -> u32 {
    seconds.saturating_sub(MARGIN_SECONDS)
}

impl Reader<'_> {
    pub(super) fn connections(&mut self) -> Connections {
        let max = self.number("EBB_DATABASE_CONNECTIONS", 5);
        let default = Connections::IDLE_TIMEOUT.as_secs() as u32;
        let idle_seconds: u32 = self.number("EBB_DATABASE_IDLE_SECONDS", default);
        if idle_seconds == 0 {
            self.problems.push("EBB_DATABASE_IDLE_SECONDS must be at least 1".into());
        }
        let idle_timeout = Duration::from_secs(idle_seconds.into());
        Connections { idle_timeout, ..Connections::at_most(max) }
    }

    pub(super) fn request_seconds(&mut self) -> Option<u32> {
        let text = self.optional("EBB_REQUEST_SECONDS")?;
        let seconds = limit(&text);
        if seconds.is_none() {
            self.problems
                .push(format!("EBB_REQUEST_SECONDS is `{text}`; it must be more than {MARGIN_SECONDS}"));
        }
        seconds
    }

    pub(super) fn listed_queues(&mut self) -> Option<BTreeMap<String, InstalledQueue>> {
        let text = self.optional("EBB_QUEUES")?;
        let mut queues = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let read =
                entry.split_once('=').and_then(|(name, kind)| Some((name.trim(), queue(kind.trim())?)));
            match read {
                Some((name, queue)) => drop(queues.insert(name.to_owned(), queue)),
                None => self.problems.push(format!(
                    "EBB_QUEUES: `{entry}` is not of the form QUEUE=pool, QUEUE=service or QUEUE=SECONDS with more than \
                     {MARGIN_SECONDS} seconds"
                )),
            }
        }
        if !matches!(queues.get(CALLBACK_QUEUE), Some(InstalledQueue::Service(_))) {
            self.problems.push(format!(
                "EBB_QUEUES lists no service for the queue `{CALLBACK_QUEUE}`, which executes callbacks and tasks that name no queue: \
                 add {CALLBACK_QUEUE}=SECONDS"
            ));
        }
        Some(queues)
    }
}

fn queue(kind: &str) -> Option<InstalledQueue> {
    match kind {
        "pool" => Some(InstalledQueue::Pool),
        "service" => Some(InstalledQueue::Service(None)),
        seconds => limit(seconds).map(|seconds| InstalledQueue::Service(Some(seconds))),
    }
}

/// A limit that leaves time to work.
fn limit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|seconds| *seconds > MARGIN_SECONDS)
}

#[cfg(test)]
mod tests {
    use model::QueueKind;

    use super::super::tests::read;
    use super::*;

    const BASE: [(&str, &str); 3] =
        [("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];

    #[test]
    fn connections_are_closed_after_a_minute_or_as_configured() {
        assert_eq!(read(&BASE).unwrap().database_connections, Connections::at_most(5));
        let given = [("EBB_DATABASE_CONNECTIONS", "7"), ("EBB_DATABASE_IDLE_SECONDS", "3")];
        let read_given = read(&[&BASE[..], &given].concat()).unwrap().database_connections;
        assert_eq!(
            read_given,
            Connections { idle_timeout: Duration::from_secs(3), ..Connections::at_most(7) }
        );
        let problems = read(&[&BASE[..], &[("EBB_DATABASE_IDLE_SECONDS", "0")]].concat()).unwrap_err();
        assert!(problems.to_string().contains("EBB_DATABASE_IDLE_SECONDS"), "{problems}");
    }

    #[test]
    fn work_ends_before_the_platform_ends_it() {
        let unlimited = read(&BASE).unwrap();
        assert_eq!((unlimited.request_limit(), unlimited.queues()), (None, Queues::default()));
        let given = [
            ("EBB_REQUEST_SECONDS", "600"),
            ("EBB_QUEUES", "heavy=3600, light=600, gpu = pool, own=service"),
        ];
        let limited = read(&[&BASE[..], &given].concat()).unwrap();
        assert_eq!(limited.request_limit(), Some(Duration::from_secs(585)));
        let queues = limited.queues();
        assert_eq!(queues.names(), ["gpu", "heavy", "light", "own"]);
        let seconds = ["heavy", "light", "gpu", "own"].map(|name| queues.attempt_seconds(name));
        assert_eq!(seconds, [Some(3585), Some(585), None, None]);
        let kinds = ["light", "gpu", "own"].map(|name| queues.kind(name).unwrap());
        assert_eq!(kinds, [QueueKind::Service, QueueKind::Pool, QueueKind::Service]);
    }

    #[test]
    fn a_limit_that_leaves_no_time_is_rejected() {
        let given = [("EBB_REQUEST_SECONDS", "15"), ("EBB_QUEUES", "heavy,light=9,a=x")];
        let problems = read(&[&BASE[..], &given].concat()).unwrap_err().to_string();
        for part in [
            "EBB_REQUEST_SECONDS is `15`",
            "`heavy`",
            "`light=9`",
            "`a=x`",
            "no service for the queue `light`",
        ] {
            assert!(problems.contains(part), "{part} is missing in:\n{problems}");
        }
    }
}
