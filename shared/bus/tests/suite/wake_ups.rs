//! Wake-ups: what is promised of all of them, shown for each; and what a queue of Cloud Tasks adds.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use chrono::TimeDelta;
use ebbflow_bus::WakeUps;
use ebbflow_bus::wake_up::{Alarm, CloudTasks, Target, Ticks};
use model::{Clock, Instant};
use testkit::{CloudTasksServer, ManualClock, run_others};

const QUEUE: &str = "projects/p/locations/r/queues/wake-ups";

/// Wake-ups, and the sweep that they call.
#[async_trait]
trait Driver: Send + Sync {
    fn wake_ups(&self) -> &dyn WakeUps;
    fn clock(&self) -> &ManualClock;
    /// Lets the time pass, and returns when the sweep was called meanwhile.
    async fn pass(&self, until: Instant) -> Vec<Instant>;
}

struct Scheduler(ManualClock);

#[async_trait]
impl Driver for Scheduler {
    fn wake_ups(&self) -> &dyn WakeUps {
        &Ticks
    }

    fn clock(&self) -> &ManualClock {
        &self.0
    }

    async fn pass(&self, until: Instant) -> Vec<Instant> {
        let from = self.0.now();
        self.0.set(until);
        let ticks = (1..).map(|minute| from + TimeDelta::minutes(minute));
        ticks.take_while(|tick| *tick <= until).collect()
    }
}

struct InProcess {
    clock: ManualClock,
    alarm: Alarm,
    calls: Arc<Mutex<Vec<Instant>>>,
}

impl InProcess {
    fn start() -> Self {
        let driver = Self { clock: clock(), alarm: Alarm::default(), calls: Arc::default() };
        let (clock, alarm, calls) = (driver.clock.clone(), driver.alarm.clone(), driver.calls.clone());
        tokio::spawn(async move {
            loop {
                alarm.ring(&clock).await;
                calls.lock().unwrap().push(clock.now());
            }
        });
        driver
    }
}

#[async_trait]
impl Driver for InProcess {
    fn wake_ups(&self) -> &dyn WakeUps {
        &self.alarm
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn pass(&self, until: Instant) -> Vec<Instant> {
        run_others().await;
        while self.clock.now() < until {
            self.clock.advance(TimeDelta::milliseconds(100));
            run_others().await;
        }
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

struct Queue {
    clock: ManualClock,
    server: CloudTasksServer,
    tasks: CloudTasks,
    calls: Arc<Mutex<Vec<Instant>>>,
    status: Arc<Mutex<StatusCode>>,
}

impl Queue {
    async fn start() -> Self {
        let clock = clock();
        let server = CloudTasksServer::start(QUEUE, clock.clone()).await;
        let calls: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let status = Arc::new(Mutex::new(StatusCode::NO_CONTENT));
        let (at, called, answer) = (clock.clone(), calls.clone(), status.clone());
        let sweep = post(move || {
            called.lock().unwrap().push(at.now());
            let status = *answer.lock().unwrap();
            async move { status }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sweep", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/sweep", sweep)).await });
        let tasks = tasks(QUEUE, &url, &server, &clock);
        Self { clock, server, tasks, calls, status }
    }
}

fn tasks(queue: &str, url: &str, server: &CloudTasksServer, clock: &ManualClock) -> CloudTasks {
    let (account, audience) = ("invoker@p.iam".to_owned(), "sweep-push".to_owned());
    let target = Target { queue: queue.to_owned(), url: url.to_owned(), account, audience };
    CloudTasks::new(target, Some(server.url().to_owned()), Arc::new(clock.clone())).unwrap()
}

#[async_trait]
impl Driver for Queue {
    fn wake_ups(&self) -> &dyn WakeUps {
        &self.tasks
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn pass(&self, until: Instant) -> Vec<Instant> {
        while let Some(next) = self.server.next_at().filter(|next| *next <= until) {
            self.clock.set(next.max(self.clock.now()));
            self.server.run_due().await;
        }
        self.clock.set(until);
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

fn clock() -> ManualClock {
    ManualClock::at("2026-01-01T00:00:00Z")
}

/// What every way to wake the sweep promises.
async fn conforms(driver: &dyn Driver) {
    let (wake_ups, start) = (driver.wake_ups(), driver.clock().now());
    let after = |milliseconds| start + TimeDelta::milliseconds(milliseconds);
    let lateness = TimeDelta::milliseconds(if wake_ups.are_exact() { 100 } else { 60_000 });
    // In any order, and those of one tenth of a second often.
    let due = [after(70_550), after(20_000), after(20_040), after(150_000)];
    let often = (501..=550).map(|milliseconds| after(70_000 + milliseconds));
    for due_at in due.into_iter().chain(often) {
        wake_ups.request(due_at).await.unwrap();
    }
    let calls = driver.pass(after(240_000)).await;
    for due_at in due {
        let in_time = calls.iter().any(|call| *call >= due_at && *call <= due_at + lateness);
        assert!(in_time, "{due_at} is not among {calls:?}");
    }
    if wake_ups.are_exact() {
        assert_eq!(calls.len(), due.len(), "one call for each tenth of a second: {calls:?}");
    }
    // What is due is requested at once, again and again.
    for _ in 0..2 {
        let now = driver.clock().now();
        wake_ups.request(now - TimeDelta::minutes(5)).await.unwrap();
        wake_ups.request(now + TimeDelta::seconds(5)).await.unwrap();
        let calls = driver.pass(now + TimeDelta::minutes(1)).await;
        assert!(!calls.is_empty(), "{now}: nothing was called");
    }
}

#[tokio::test]
async fn the_schedulers_ticks_conform() {
    conforms(&Scheduler(clock())).await;
}

#[tokio::test]
async fn the_alarm_in_a_process_conforms() {
    conforms(&InProcess::start()).await;
}

#[tokio::test]
async fn a_cloud_tasks_queue_conforms() {
    let queue = Queue::start().await;
    conforms(&queue).await;
    assert!(queue.server.rejections().is_empty(), "{:?}", queue.server.rejections());
}

#[tokio::test]
async fn many_requests_create_one_task_and_a_name_is_not_used_again() {
    let queue = Queue::start().await;
    let due_at = queue.clock.now() + TimeDelta::seconds(30);
    for _ in 0..50 {
        queue.tasks.request(due_at).await.unwrap();
    }
    assert_eq!((queue.server.requests(), queue.server.waiting()), (50, 1));
    assert_eq!(queue.pass(due_at).await, [due_at]);
    queue.tasks.request(due_at).await.unwrap();
    let again = due_at + TimeDelta::seconds(1);
    assert_eq!(queue.pass(again).await, [again], "the name of the first one is taken for a day");
}

#[tokio::test]
async fn a_call_that_fails_is_repeated() {
    let queue = Queue::start().await;
    let due_at = queue.clock.now() + TimeDelta::seconds(30);
    queue.tasks.request(due_at).await.unwrap();
    *queue.status.lock().unwrap() = StatusCode::SERVICE_UNAVAILABLE;
    queue.clock.set(due_at);
    queue.server.run_due().await;
    *queue.status.lock().unwrap() = StatusCode::NO_CONTENT;
    assert_eq!(queue.pass(due_at + TimeDelta::minutes(1)).await.len(), 2);
}

#[tokio::test]
async fn a_distant_wake_up_is_requested_as_far_ahead_as_the_queue_allows() {
    let queue = Queue::start().await;
    queue.tasks.request(queue.clock.now() + TimeDelta::days(400)).await.unwrap();
    let ahead = queue.server.next_at().unwrap() - queue.clock.now();
    assert!(ahead > TimeDelta::days(28) && ahead < TimeDelta::days(30), "{ahead}");
}

#[tokio::test]
async fn what_the_queue_rejects_is_an_error_that_says_why() {
    let queue = Queue::start().await;
    let due_at = queue.clock.now() + TimeDelta::seconds(30);
    let request = async |name: &str, url: &str| {
        let wrong = tasks(name, url, &queue.server, &queue.clock);
        wrong.request(due_at).await.unwrap_err().to_string()
    };
    let missing = request("projects/p/locations/r/queues/other", "http://127.0.0.1:1/sweep").await;
    assert!(missing.contains("404") && missing.contains("Queue does not exist"), "{missing}");
    let invalid = request(QUEUE, "/sweep").await;
    assert!(invalid.contains("400") && invalid.contains("not a valid HTTP URL"), "{invalid}");
    queue.server.set_unavailable(true);
    assert!(queue.tasks.request(due_at).await.is_err());
}
