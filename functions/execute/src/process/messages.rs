//! What a program says while it runs: lines of JSON in the pipe `EBB_MESSAGES`.
//!
//! A named pipe and not a file: a line is read as soon as it is written, a program that floods it is slowed down instead of
//! filling the disk, and one that removes or replaces it loses only its own messages. Whatever a program writes costs no more
//! memory than its longest line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::chown;
use std::path::Path;

use model::progress::{MAX_METRIC_NAME, is_metric};
use model::{Done, Failure, json_error};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::level;
use crate::job::Context;
use crate::log::{Level, Stream};

/// The maximum length of a message, and so of a checkpoint, in bytes. Longer ones are dropped.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How much is read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many unusable messages are reported in the log.
const MAX_COMPLAINTS: u32 = 10;

/// The reader of the pipe. Dropping it stops the reader.
pub(super) struct Messages {
    reader: JoinSet<()>,
    stop: CancellationToken,
}

impl Messages {
    /// Creates the pipe, which only its program's user may write to, and starts to read it.
    pub(super) fn follow(path: &Path, user: Option<u32>, context: &Context) -> Result<Self, Failure> {
        let create = || -> io::Result<(Receiver, Sender)> {
            make_pipe(path)?;
            // The worker's own writer keeps the pipe open while no program writes.
            let ends = (OpenOptions::new().open_receiver(path)?, OpenOptions::new().open_sender(path)?);
            if let Some(user) = user {
                chown(path, Some(user), Some(user))?;
            }
            Ok(ends)
        };
        let (pipe, writer) = create()
            .map_err(|error| Failure::transient(format!("cannot create the pipe EBB_MESSAGES: {error}")))?;
        let (stop, context) = (CancellationToken::new(), context.clone());
        let reader = Reader { line: Vec::new(), is_skipping: false, complaints: 0, context };
        let mut task = JoinSet::new();
        task.spawn(reader.read(pipe, writer, stop.clone()));
        Ok(Self { reader: task, stop })
    }

    /// Takes in what is left in the pipe after the last program has ended.
    pub(super) async fn end(&mut self) {
        self.stop.cancel();
        while self.reader.join_next().await.is_some() {}
    }
}

/// Makes a named pipe that only its owner may use.
#[cfg(not(target_os = "macos"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, mkfifoat};
    Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?)
}

/// The same where the system's call is not at hand.
#[cfg(target_os = "macos")]
fn make_pipe(path: &Path) -> io::Result<()> {
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other(format!("mkfifo ended with {made}"))) }
}

/// Splits what a program writes into messages.
struct Reader {
    line: Vec<u8>,
    /// Whether the beginning of the current line was too long and is dropped.
    is_skipping: bool,
    complaints: u32,
    context: Context,
}

impl Reader {
    async fn read(mut self, mut pipe: Receiver, writer: Sender, stop: CancellationToken) {
        let mut bytes = vec![0; CHUNK_BYTES];
        while let Some(read) = stop.run_until_cancelled(pipe.read(&mut bytes)).await {
            match read {
                Ok(0) | Err(_) => return,
                Ok(length) => self.take(&bytes[..length]).await,
            }
        }
        drop(writer);
        // What was written is in the pipe, even if the system has not said so yet.
        let Ok(mut rest) = pipe.into_nonblocking_fd().map(File::from) else { return };
        // No more than a pipe can hold: a process that has escaped its group may still write.
        let mut left = MAX_MESSAGE_BYTES;
        while left > 0
            && let Ok(length @ 1..) = rest.read(&mut bytes)
        {
            left = left.saturating_sub(length);
            self.take(&bytes[..length]).await;
        }
        self.take(b"\n").await;
    }

    /// Takes in bytes, which end anywhere in a line.
    async fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > MAX_MESSAGE_BYTES {
                self.is_skipping = true;
            }
            match self.is_skipping {
                true => self.line.clear(),
                false => self.line.extend_from_slice(part),
            }
            if part.ends_with(b"\n") {
                self.take_line().await;
            }
        }
    }

    async fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_skipping) {
            return self.complain(&format!("a message of more than {MAX_MESSAGE_BYTES} bytes")).await;
        }
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => self.take_in(message).await,
            Err(error) => {
                let why = json_error::in_words(&error);
                self.complain(&format!("a message that is not understood: {why}")).await
            }
        }
    }

    async fn take_in(&mut self, message: Message) {
        let reports = self.context.reports.clone();
        match message.progress {
            Some(fraction) if (0.0..=1.0).contains(&fraction) => {
                reports.progress(Done { fraction, message: message.message });
            }
            Some(fraction) => {
                self.complain(&format!("`progress` must be from 0 to 1, and not {fraction}")).await
            }
            None if message.message.is_some() => self.complain("`message` belongs to `progress`").await,
            None => {}
        }
        for (name, value) in message.metric {
            if is_metric(&name, value) {
                reports.metric(&name, value);
            } else {
                let rule = format!("the name of a metric has 1 to {MAX_METRIC_NAME} printable characters");
                self.complain(&rule).await;
            }
        }
        if let Some(checkpoint) = message.checkpoint {
            reports.checkpoint(checkpoint);
        }
        if let Some(Entry { level, message }) = message.log {
            let level = level.as_deref().map_or(Some(Level::Info), level::named).unwrap_or(Level::Info);
            for line in message.lines() {
                self.context.log.line(Stream::Stdout, level, line).await;
            }
        }
    }

    /// Says in the log what was ignored, a few times.
    async fn complain(&mut self, what: &str) {
        self.complaints += 1;
        let notice = match self.complaints {
            ..MAX_COMPLAINTS => format!("EBB_MESSAGES: ignored {what}"),
            MAX_COMPLAINTS => {
                format!("EBB_MESSAGES: ignored {what}; more such messages are ignored silently")
            }
            _ => return,
        };
        self.context.log.line(Stream::System, Level::Warning, &notice).await;
    }
}

/// One line of the pipe.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    /// The share of the work that is done, from 0 to 1.
    progress: Option<f64>,
    /// What the program is doing, beside `progress`.
    message: Option<String>,
    /// The state that the next attempt continues from.
    checkpoint: Option<Value>,
    /// Values of metrics, by name.
    #[serde(default)]
    metric: BTreeMap<String, f64>,
    /// A line for the log.
    log: Option<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    level: Option<String>,
    message: String,
}

#[cfg(test)]
mod tests;
