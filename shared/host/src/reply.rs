//! Responses to pushes, as types: no handler writes a status code.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bus::envelope::Delivery;
use tracing::warn;

use crate::App;

/// A handler's verdict on a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Handled, by this delivery or an earlier one.
    Done,
    /// To be delivered again, for this reason.
    Retry(String),
    /// To be dead-lettered: it can never succeed, for this reason.
    Reject(String),
}

/// The response to a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// 204: the bus must not deliver it again.
    Ack,
    /// 503: the bus must deliver it again, for this reason.
    Retry(String),
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self {
            Self::Ack => StatusCode::NO_CONTENT.into_response(),
            Self::Retry(reason) => {
                warn!("Message will be redelivered: {reason}");
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response()
            }
        }
    }
}

impl App {
    /// Turns a verdict into the response to its push. Only committed work is acknowledged; a message that can never succeed
    /// is dead-lettered first.
    pub async fn reply(&self, delivery: &Delivery, outcome: runtime::Result<Verdict>) -> Reply {
        match outcome {
            Ok(Verdict::Done) => Reply::Ack,
            Ok(Verdict::Retry(reason)) => Reply::Retry(reason),
            Ok(Verdict::Reject(reason)) => self.dead_letter(delivery, reason).await,
            Err(error) if error.is_hopeless() => self.dead_letter(delivery, error.to_string()).await,
            Err(error) => Reply::Retry(error.to_string()),
        }
    }
}
