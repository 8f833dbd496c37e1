//! A private Postgres: an installed one in its own folder, or one compiled in.
//!
//! [`Server::start`] takes a folder and returns a running server that listens on a unix socket with private
//! permissions. The server lives as long as its owner: it stops when the [`Server`] is stopped or dropped, and when
//! the owning process is killed. Committed data is there at the next start.
//!
//! An installed Postgres is preferred. Where there is none, the feature `pglite` brings the programs of
//! one: they are unpacked into the folder and run from there.
//!
//! [`Emulator`] is Google's emulator of Pub/Sub, where it is installed.

mod account;
#[cfg(compiled_in)]
mod archive;
mod choice;
mod cluster;
mod emulator;
mod error;
mod installed;
mod kind;
mod orphan;
mod place;
mod postmaster;
mod server;
mod tether;

pub use choice::Preference;
pub use emulator::Emulator;
pub use error::Error;
pub use kind::Kind;
pub use server::{Durability, Options, Server};
pub use tether::end_with_us;
