//! Arguments about workers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use model::{Label, TypeName, WorkerId};
use serde_json::Value;

/// A worker to run here, or one to stop.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Worker {
    /// The worker to stop.
    #[command(subcommand)]
    pub stop: Option<StopWorker>,
    /// The worker to run.
    #[command(flatten)]
    pub run: Option<RunWorker>,
}

/// How a worker stops. The command reaches it with its next heartbeat, within ten seconds.
#[derive(Subcommand, Clone, Debug)]
pub enum StopWorker {
    /// Stop the attempts of a worker at once; other workers take over, and no retry is used
    Kill {
        /// Id of the worker, as `ebb workers` lists it
        id: WorkerId,
        /// Reason, shown with the worker
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a worker finish its attempts, and give it no more work
    Drain {
        /// Id of the worker, as `ebb workers` lists it
        id: WorkerId,
        /// Reason, shown with the worker
        #[arg(long)]
        reason: Option<String>,
    },
}

/// The worker to run.
#[derive(Args, Clone, Debug)]
pub struct RunWorker {
    /// Queue to serve, of the kind `pool`
    #[arg(long, value_name = "NAME")]
    pub queue: String,
    /// Maximum number of tasks to run at the same time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub slots: u16,
    /// Label that tasks may require: true, false, a number or text
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::pair)]
    pub labels: Vec<(String, String)>,
    /// Program that implements a custom task type, in any language; repeat it for several
    #[arg(long = "exec", value_name = "TYPE=PROGRAM", value_parser = implementation)]
    pub programs: Vec<(TypeName, PathBuf)>,
    /// Seconds that tasks may continue after SIGTERM, before they are stopped and handed back
    #[arg(long, default_value = "300", value_name = "SECONDS", value_parser = seconds)]
    pub grace: Duration,
    /// Seconds that tasks have to save their state, once they got SIGTERM, before they are killed
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = stop_seconds)]
    pub stop_grace: Duration,
    /// Name, unique for each process [default: the name of the host and a random part]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder that `script` paths of tasks are relative to
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub scripts: PathBuf,
    /// Percentage of memory or disk space in use above which the worker takes no more tasks and ends; 100 for never
    #[arg(long, default_value_t = 95, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub drain_above: u8,
}

impl RunWorker {
    /// The labels: JSON where the text is a number, true or false, else text.
    pub fn labels(&self) -> impl Iterator<Item = (String, Label)> {
        self.labels.iter().map(|(key, text)| (key.clone(), label(text)))
    }
}

fn label(text: &str) -> Label {
    match serde_json::from_str(text) {
        Ok(Value::Bool(flag)) => Label::Flag(flag),
        Ok(Value::Number(number)) => Label::Number(number),
        _ => Label::Text(text.to_owned()),
    }
}

pub(super) fn implementation(text: &str) -> Result<(TypeName, PathBuf), String> {
    let (name, program) = super::pair(text).map_err(|_| "expected TYPE=PROGRAM")?;
    let name = TypeName::new(&name).ok_or("expected the name of a custom type, such as `raster.validate`")?;
    Ok((name, program.into()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_secs).map_err(|_| "expected a number of seconds".into())
}

/// At most what every task gets that is stopped, for whatever reason.
fn stop_seconds(text: &str) -> Result<Duration, String> {
    let max = execute::Context::DEFAULT_GRACE;
    seconds(text)
        .ok()
        .filter(|given| *given <= max)
        .ok_or_else(|| format!("expected 0 to {} seconds", max.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_programs_are_read_from_their_arguments() {
        let text = |text: &str| Label::Text(text.into());
        assert_eq!(label("true"), Label::Flag(true));
        assert_eq!(label("80"), Label::Number(80.into()));
        assert_eq!(
            implementation("raster.validate=./validate"),
            Ok((TypeName::new("raster.validate").unwrap(), "./validate".into()))
        );
        assert!(implementation("bash=./validate").is_err() && implementation("raster.validate").is_err());
        assert_eq!(["a100", "[1]", "\"x\"", ""].map(label), ["a100", "[1]", "\"x\"", ""].map(text));
    }
}
