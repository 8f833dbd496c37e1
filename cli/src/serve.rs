//! `ebb serve`: serves one function, so that one program suffices for the image.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

/// The function to serve, or to check.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    /// Name of the function
    pub function: Function,
    /// Check the settings, report all problems at once, and exit
    // The function reads the argument itself, since it may also be a separate program.
    #[arg(long)]
    pub check: bool,
}

/// A function of Ebbflow.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Function {
    /// Starts runs that requests, events and other runs ask for
    Trigger,
    /// Settles results and other commands that arrive as messages
    Evaluate,
    /// Runs the attempts of tasks
    Execute,
    /// Fires timers, creates scheduled runs and repairs what was lost
    Sweep,
    /// Serves the web console and the API
    Console,
}

impl Function {
    /// Serves the function until the process is asked to stop.
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
