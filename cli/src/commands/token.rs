//! `ebb token`: prints the token of the `ebb dev` of the data folder.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Shared;
use crate::client::DevFile;
use crate::output;

pub(super) fn run(shared: &Shared) -> Result<ExitCode> {
    let dev = DevFile::read(&shared.data)?;
    output::print(shared, &dev, || &dev.token)?;
    Ok(ExitCode::SUCCESS)
}
