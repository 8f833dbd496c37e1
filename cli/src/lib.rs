//! The ebb command: Ebbflow on a laptop, and the command line to any Ebbflow.

pub mod args;
pub mod cli;
pub mod client;
pub mod commands;
pub mod dev;
pub mod files;
pub mod output;
pub mod serve;
