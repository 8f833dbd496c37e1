//! Serving one function: an image needs no more than this one program.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

/// What to serve.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    /// The function
    pub function: Function,
    /// Only check the settings; says everything that is wrong with them at once
    // The function looks for it itself, as it does in a program of its own.
    #[arg(long)]
    pub check: bool,
}

/// A function of Ebbflow.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Function {
    /// Creates runs
    Trigger,
    /// Settles results from elsewhere
    Evaluate,
    /// Carries out attempts
    Execute,
    /// Fires timers and repairs
    Sweep,
    /// Shows pages and answers the API
    Console,
}

impl Function {
    /// Serves until the process is asked to stop.
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
