//! The `ebb` command: runs Ebbflow locally, and is the command line of any Ebbflow server.

pub mod args;
pub mod cli;
pub mod client;
pub mod cloud;
pub mod commands;
pub mod dev;
pub mod files;
pub mod output;
pub mod serve;
pub mod worker;
