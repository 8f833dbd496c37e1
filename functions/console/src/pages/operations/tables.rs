//! Pages of operations that are lists.

use api::backfills::BackfillView;
use api::limits::LimitView;
use api::page::Page;
use api::request::Query;
use api::schedules::ScheduleView;
use api::timers::TimerView;
use api::triggers::TriggerView;
use api::views::WorkerView;
use askama::Template;
use host::Problem;
use serde::Deserialize;

use super::super::Answer;
use crate::ask::{part, query};
use crate::charts::meter;
use crate::shell::Shell;
use crate::show::{self, Markup};
use crate::visitor::Visitor;

/// Which page of a list.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    workflow: Option<String>,
    cursor: Option<String>,
}

impl ListQuery {
    fn to_api(&self) -> String {
        let workflow = self.workflow.as_deref().filter(|workflow| !workflow.is_empty());
        query([("limit", Some("50")), ("workflow", workflow), ("cursor", self.cursor.as_deref())])
    }

    /// The next page of the list at that path.
    fn onwards(&self, path: &str, cursor: &str) -> String {
        format!("{path}{}", query([("workflow", self.workflow.as_deref()), ("cursor", Some(cursor))]))
    }
}

#[derive(Template)]
#[template(path = "limits.html")]
struct LimitsPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    queues: Vec<LimitView>,
    others: Vec<LimitView>,
    next_cursor: Option<String>,
}

pub(super) async fn limits(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = ListQuery { workflow: None, ..wanted?.0 };
    let page: Page<LimitView> = visitor.ask.get(&format!("/limits{}", wanted.to_api())).await?;
    let (queues, others) = page.items.into_iter().partition(|limit| limit.kind == "queue");
    let next_cursor = page.next_cursor;
    Ok(show::html(&LimitsPage { shell: visitor.shell, tab: "limits", wanted, queues, others, next_cursor }))
}

impl LimitsPage {
    /// Whether these are all limits.
    fn is_whole(&self) -> bool {
        self.wanted.cursor.is_none() && self.next_cursor.is_none()
    }

    fn set(&self, limit: &LimitView) -> Markup {
        self.shell.post(format!("/operations/limits/{}/{}", part(&limit.kind), part(&limit.name)))
    }
}

#[derive(Template)]
#[template(path = "workers.html")]
struct WorkersPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    page: Page<WorkerView>,
}

pub(super) async fn workers(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = ListQuery { workflow: None, ..wanted?.0 };
    let page = visitor.ask.get(&format!("/workers{}", wanted.to_api())).await?;
    Ok(show::html(&WorkersPage { shell: visitor.shell, tab: "workers", wanted, page }))
}

impl WorkersPage {
    fn command(&self, worker: &WorkerView, action: &str) -> Markup {
        self.shell.post(format!("/operations/workers/{}/{action}", worker.id))
    }

    /// How many attempts a worker holds that the page does not show.
    fn more(&self, worker: &WorkerView) -> Option<i64> {
        Some(worker.holding - worker.attempts.len() as i64).filter(|more| *more > 0)
    }

    fn labels(&self, worker: &WorkerView) -> String {
        let each = worker.labels.iter().map(|(name, value)| format!("{name}={value}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// The shares of the machine that are in use.
    fn usage(&self, worker: &WorkerView) -> String {
        let Some(usage) = worker.usage else { return String::new() };
        let percent =
            |share: Option<f64>| share.map_or("?".into(), |share| format!("{:.0} %", share * 100.0));
        [usage.cpu, usage.memory, usage.disk].map(percent).join(", ")
    }
}

#[derive(Template)]
#[template(path = "timers.html")]
struct TimersPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    page: Page<TimerView>,
}

pub(super) async fn timers(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = wanted?.0;
    let page = visitor.ask.get(&format!("/timers{}", wanted.to_api())).await?;
    Ok(show::html(&TimersPage { shell: visitor.shell, tab: "timers", wanted, page }))
}

impl TimersPage {
    fn wake(&self, timer: &TimerView) -> Option<Markup> {
        let task = timer.task.as_ref().filter(|_| ["sleep", "retry"].contains(&timer.kind.as_str()))?;
        Some(self.shell.post(format!("/runs/{}/tasks/{}/wake", timer.run, part(task))))
    }
}

#[derive(Template)]
#[template(path = "schedules.html")]
struct SchedulesPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    page: Page<ScheduleView>,
}

pub(super) async fn schedules(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = wanted?.0;
    let page = visitor.ask.get(&format!("/schedules{}", wanted.to_api())).await?;
    Ok(show::html(&SchedulesPage { shell: visitor.shell, tab: "schedules", wanted, page }))
}

impl SchedulesPage {
    fn steer(&self, schedule: &ScheduleView, action: &str) -> Markup {
        self.shell.post(format!("/operations/schedules/{}/{action}", part(&schedule.workflow)))
    }

    fn pattern(&self, schedule: &ScheduleView) -> String {
        match (&schedule.cron, schedule.every_seconds, &schedule.at) {
            (Some(cron), ..) => format!("{cron} {}", schedule.timezone),
            (_, Some(seconds), _) => format!("every {}", show::seconds(&i64::from(seconds))),
            (.., Some(at)) => format!("once, {}", show::day(at)),
            _ => String::new(),
        }
    }
}

#[derive(Template)]
#[template(path = "triggers.html")]
struct TriggersPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    page: Page<TriggerView>,
}

pub(super) async fn triggers(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = wanted?.0;
    let page = visitor.ask.get(&format!("/triggers{}", wanted.to_api())).await?;
    Ok(show::html(&TriggersPage { shell: visitor.shell, tab: "triggers", wanted, page }))
}

impl TriggersPage {
    fn steer(&self, trigger: &TriggerView, action: &str) -> Markup {
        let (workflow, name) = (part(&trigger.workflow), part(&trigger.name));
        self.shell.post(format!("/operations/triggers/{workflow}/{name}/{action}"))
    }
}

#[derive(Template)]
#[template(path = "backfills.html")]
struct BackfillsPage {
    shell: Shell,
    tab: &'static str,
    wanted: ListQuery,
    page: Page<BackfillView>,
}

pub(super) async fn backfills(visitor: Visitor, wanted: Result<Query<ListQuery>, Problem>) -> Answer {
    let wanted = wanted?.0;
    let page = visitor.ask.get(&format!("/backfills{}", wanted.to_api())).await?;
    Ok(show::html(&BackfillsPage { shell: visitor.shell, tab: "backfills", wanted, page }))
}

impl BackfillsPage {
    fn steer(&self, backfill: &BackfillView, action: &str) -> Markup {
        self.shell.post(format!("/operations/backfills/{}/{action}", backfill.id))
    }

    fn progress(&self, backfill: &BackfillView) -> Markup {
        meter(&backfill.ended, &Some(backfill.dates))
    }
}
