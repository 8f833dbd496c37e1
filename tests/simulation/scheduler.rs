//! A scheduler that decides by a seed which handler goes on, and which one dies where it stands.
//!
//! Handlers are futures that stop at [`Points`]: before and after everything that touches the store or the bus.
//! Dropping one there is a process killed there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

/// Where handlers stop. Clones share one count.
#[derive(Clone, Default)]
pub(crate) struct Points(Arc<AtomicU64>);

impl Points {
    /// Lets others go on, or dies here.
    pub(crate) async fn stop(&self) {
        let mut stopped = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut stopped, true) {
                return Poll::Ready(());
            }
            self.0.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// How often any handler has stopped.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// The handlers under way, each with what the world wants to know about it.
pub(crate) struct Handlers<K, T> {
    tasks: Vec<(K, Task<T>)>,
}

impl<K, T> Handlers<K, T> {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn start(&mut self, about: K, task: impl Future<Output = T> + 'static) {
        self.tasks.push((about, Box::pin(task)));
    }

    /// Lets one handler go on to its next stop; gives its result if it came to its end.
    pub(crate) fn go_on(&mut self, index: usize) -> Option<(K, T)> {
        let mut context = Context::from_waker(Waker::noop());
        match self.tasks[index].1.as_mut().poll(&mut context) {
            Poll::Ready(result) => {
                let (about, _) = self.tasks.swap_remove(index);
                Some((about, result))
            }
            Poll::Pending => None,
        }
    }

    /// Kills one handler where it stands.
    pub(crate) fn kill(&mut self, index: usize) -> K {
        self.tasks.swap_remove(index).0
    }
}
