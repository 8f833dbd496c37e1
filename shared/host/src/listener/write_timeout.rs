//! Clients that do not read: what is written to them waits in memory, so they are given up after a while.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a client must take within the timeout, in bytes, unless it takes all that there is. A byte now and then is not enough.
const MIN_TAKEN: usize = 64 * 1024;

/// A stream that fails to write once its client has taken too little for too long. A client that is sent nothing is not
/// waited for.
pub(super) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    waiting: Option<Waiting>,
}

/// Something was not taken at once.
struct Waiting {
    /// What the client has taken since then, in bytes.
    taken: usize,
    end: Pin<Box<Sleep>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, waiting: None }
    }

    /// Notes how much a write has taken, or that the client has to be waited for.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(taken)) => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.taken += taken;
                    if waiting.taken >= MIN_TAKEN {
                        waiting.taken = 0;
                        waiting.end.as_mut().reset(Instant::now() + self.timeout);
                    }
                }
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let timeout = self.timeout;
                let new = || Waiting { taken: 0, end: Box::pin(sleep_until(Instant::now() + timeout)) };
                let waiting = self.waiting.get_or_insert_with(new);
                waiting.end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The server flushes when it has written all that there is.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.waiting = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// A client that takes this much at each write, and then nothing any more.
    struct Client(VecDeque<usize>);

    impl AsyncWrite for Client {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            match self.0.pop_front() {
                // It is asked again later.
                Some(0) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(taken) => Poll::Ready(Ok(taken)),
                None => Poll::Pending,
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn writing(takes: impl IntoIterator<Item = usize>, timeout: Duration) -> WriteTimeout<Client> {
        WriteTimeout::new(Client(takes.into_iter().collect()), timeout)
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let mut client = writing([10, 0], Duration::from_millis(1));
        let refused = client.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn only_a_client_that_takes_enough_gets_more_time() {
        let timeout = Duration::from_secs(600);
        for (taken, is_reset) in [(1, false), (MIN_TAKEN, true)] {
            let mut client = writing([0, taken], timeout);
            let mut context = Context::from_waker(std::task::Waker::noop());
            let bytes = vec![0; 2 * MIN_TAKEN];
            assert!(Pin::new(&mut client).poll_write(&mut context, &bytes).is_pending());
            let before = client.waiting.as_ref().map(|waiting| waiting.end.deadline()).unwrap();
            assert!(Pin::new(&mut client).poll_write(&mut context, &bytes).is_ready());
            let after = client.waiting.as_ref().map(|waiting| waiting.end.deadline()).unwrap();
            assert_eq!(after > before, is_reset, "{taken} bytes");
        }
    }

    #[tokio::test]
    async fn a_client_that_has_taken_everything_is_not_waited_for() {
        let mut client = writing([0, 100], Duration::from_secs(600));
        client.write_all(&[0; 100]).await.unwrap();
        client.flush().await.unwrap();
        assert!(client.waiting.is_none());
    }
}
