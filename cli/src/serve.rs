//! `ebb serve`: serves one function, so that one program suffices for the image.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

/// What to serve.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    /// The function
    pub function: Function,
    /// Only check the settings; reports all problems at once
    // The function reads the argument itself, since it may also be a separate program.
    #[arg(long)]
    pub check: bool,
}

/// A function of Ebbflow.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Function {
    /// Creates runs
    Trigger,
    /// Settles results and other commands that arrive as messages
    Evaluate,
    /// Runs attempts
    Execute,
    /// Fires timers and repairs
    Sweep,
    /// Serves the web console and the API
    Console,
}

impl Function {
    /// Serves until shutdown.
    pub fn main(self) -> ExitCode {
        match self {
            Self::Trigger => trigger::main(),
            Self::Evaluate => evaluate::main(),
            Self::Execute => execute::main(),
            Self::Sweep => sweep::main(),
            Self::Console => console::main(),
        }
    }
}
