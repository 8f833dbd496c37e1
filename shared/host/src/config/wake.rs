//! The source that wakes the sweep.

use std::sync::Arc;

use bus::WakeUps;
use bus::wake_up::{CloudTasks, Target, Ticks};
use model::Clock;

use super::{PushConfig, Reader};
use crate::app::StartError;

/// The source that wakes the sweep: `EBB_WAKE`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum WakeConfig {
    /// `tick`: the scheduler, every minute.
    #[default]
    Ticks,
    /// `tasks`: a Cloud Tasks queue, when something is due; the scheduler only once an hour.
    Tasks {
        /// `EBB_WAKE_QUEUE` and `EBB_WAKE_URL`: the queue and the address of the sweep. Only the sweep needs them: the other
        /// functions send it a message.
        target: Option<Target>,
        /// `EBB_TASKS_ENDPOINT`: a server with the API of Cloud Tasks, instead of Google's.
        endpoint: Option<String>,
    },
}

impl WakeConfig {
    /// Whether the sweep is called when something is due.
    pub fn is_exact(&self) -> bool {
        *self != Self::Ticks
    }

    /// Builds what the sweep requests its wake-ups from.
    pub fn build(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn WakeUps>, StartError> {
        match self {
            Self::Ticks => Ok(Arc::new(Ticks)),
            Self::Tasks { target: Some(target), endpoint } => {
                Ok(Arc::new(CloudTasks::new(target.clone(), endpoint.clone(), clock.clone())?))
            }
            Self::Tasks { target: None, .. } => Err(StartError::NoWakeQueue),
        }
    }
}

impl Reader<'_> {
    pub(super) fn wake(&mut self, push: &PushConfig) -> WakeConfig {
        match self.optional("EBB_WAKE").as_deref() {
            None | Some("tick") => WakeConfig::Ticks,
            Some("tasks") => {
                WakeConfig::Tasks { target: self.target(push), endpoint: self.optional("EBB_TASKS_ENDPOINT") }
            }
            Some(other) => {
                self.problems.push(format!("EBB_WAKE is `{other}`; it must be tick or tasks"));
                WakeConfig::Ticks
            }
        }
    }

    /// Wake-ups are authenticated as pushes are.
    fn target(&mut self, push: &PushConfig) -> Option<Target> {
        let (account, audience) = match push {
            PushConfig::Oidc { tokens, account } => (account.clone(), tokens.audience.clone()),
            PushConfig::Iam { audience, account } => (account.clone(), audience.clone()),
            PushConfig::None => ("nobody@localhost".to_owned(), "local".to_owned()),
        };
        let (queue, url) = (self.optional("EBB_WAKE_QUEUE"), self.optional("EBB_WAKE_URL"));
        if queue.is_none() && url.is_none() {
            return None;
        }
        let queue = queue.unwrap_or_default();
        let parts: Vec<&str> = queue.split('/').collect();
        let is_queue = matches!(parts[..], ["projects", _, "locations", _, "queues", _])
            && parts.iter().all(|part| !part.is_empty());
        if !is_queue {
            let form = "projects/PROJECT/locations/REGION/queues/QUEUE";
            self.problems.push(format!("EBB_WAKE_QUEUE is `{queue}`; it must have the form {form}"));
        }
        let url = self.needed("EBB_WAKE_URL", "https://sweep.run.app/sweep");
        Some(Target { queue, url, account, audience })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    const BASE: [(&str, &str); 5] = [
        ("DATABASE_URL", "postgres://x/y"),
        ("EBB_PROJECT", "p"),
        ("EBB_PUSH_AUTH", "iam"),
        ("EBB_PUSH_AUDIENCE", "sweep-push"),
        ("EBB_PUSH_ACCOUNT", "invoker@p"),
    ];

    #[test]
    fn wake_ups_are_ticks_unless_a_queue_is_chosen() {
        assert_eq!(read(&BASE).unwrap().wake, WakeConfig::Ticks);
        let others = read(&[&BASE[..], &[("EBB_WAKE", "tasks")]].concat()).unwrap().wake;
        assert!(others.is_exact());
        let clock: Arc<dyn Clock> = Arc::new(bus::SystemClock);
        assert!(matches!(others.build(&clock), Err(StartError::NoWakeQueue)));
        let queue = "projects/p/locations/r/queues/q";
        let given =
            [("EBB_WAKE", "tasks"), ("EBB_WAKE_QUEUE", queue), ("EBB_WAKE_URL", "https://s.run.app/sweep")];
        let WakeConfig::Tasks { target: Some(target), .. } =
            read(&[&BASE[..], &given].concat()).unwrap().wake
        else {
            panic!("a queue is given")
        };
        assert_eq!((&*target.queue, &*target.account, &*target.audience), (queue, "invoker@p", "sweep-push"));
    }

    #[test]
    fn a_queue_without_its_parts_is_rejected() {
        let given = [("EBB_WAKE", "tasks"), ("EBB_WAKE_QUEUE", "q")];
        let problems = read(&[&BASE[..], &given].concat()).unwrap_err().to_string();
        assert!(
            problems.contains("EBB_WAKE_QUEUE is `q`") && problems.contains("EBB_WAKE_URL"),
            "{problems}"
        );
        let problems = read(&[&BASE[..], &[("EBB_WAKE", "often")]].concat()).unwrap_err().to_string();
        assert!(problems.contains("tick or tasks"), "{problems}");
    }
}
