//! A private Postgres: an installed one in its own folder, or one compiled in.
//!
//! [`Server::start`] takes a folder and returns a running server that listens on a unix socket with private
//! permissions. It stops when the [`Server`] is stopped or dropped, and when the owning process is killed. Committed data
//! survives.
//!
//! An installed Postgres is preferred. Without one, the feature `pglite` provides the programs: they are unpacked into the
//! folder and run from there.
//!
//! [`Emulator`] is Google's Pub/Sub emulator, if it is installed.

mod account;
#[cfg(compiled_in)]
mod archive;
mod choice;
mod cluster;
mod directories;
mod emulator;
mod error;
mod installed;
mod kind;
mod orphan;
mod parent_death;
mod postmaster;
mod server;

pub use choice::Preference;
pub use emulator::Emulator;
pub use error::Error;
pub use kind::Kind;
pub use parent_death::kill_with_parent;
pub use server::{Durability, Options, Server};
