//! The body of a response on its way to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::open::Activity;

/// A longer part of a response is passed on in pieces of this size, in bytes. They are copies, so that the part is gone as soon
/// as the last piece is.
const MAX_PIECE: usize = 16 * 1024;

/// The body of a response. What the client has not read yet counts as kept in memory; the connection is idle again once it was
/// sent.
pub(super) struct Answered {
    body: Body,
    /// The part that is being passed on, and how much of it was.
    part: Bytes,
    passed: usize,
    activity: Arc<Activity>,
}

impl Answered {
    pub(super) fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, part: Bytes::new(), passed: 0, activity }
    }

    fn begin(&mut self, part: Bytes) {
        self.activity.set_sending(true);
        self.activity.keep(part.len());
        (self.part, self.passed) = (part, 0);
    }

    /// The next piece of a part.
    fn next_piece(&mut self) -> Bytes {
        let end = self.part.len().min(self.passed + MAX_PIECE);
        let piece = Bytes::copy_from_slice(&self.part[self.passed..end]);
        self.passed = end;
        if end == self.part.len() {
            self.activity.release(end);
            self.activity.set_sending(false);
            (self.part, self.passed) = (Bytes::new(), 0);
        }
        piece
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.activity.release(self.part.len());
        self.activity.set_idle();
    }
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.part.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) if frame.data_ref().is_some_and(|data| data.len() > MAX_PIECE) => {
                    self.begin(frame.into_data().unwrap_or_default());
                }
                other => return Poll::Ready(other),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.next_piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = ((self.part.len() - self.passed) as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
