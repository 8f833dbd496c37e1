//! `ebb restore`: a copy of the database as it was.

use std::process::ExitCode;

use anyhow::Result;
use bus::SystemClock;

use crate::args::{Restore, Shared};
use crate::cloud::{Cloud, restore};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: &Restore) -> Result<ExitCode> {
    let cloud = Cloud::connect(&arguments.place).await?;
    eprintln!("Cloning the database as of {}, which takes minutes.", arguments.to);
    let restored = restore(&cloud, arguments.to, arguments.name.as_deref(), &SystemClock).await?;
    output::print(shared, &restored, || restored.to_string())?;
    Ok(ExitCode::SUCCESS)
}
