//! Runs a task's program apart from its worker.
//!
//! A worker does not start the program itself. It starts its own executable again as a **supervisor** ([`supervise`]), one for
//! each attempt, and the supervisor starts the program under a [`Plan`]:
//!
//! - another user, where the worker is root, so the program can neither read the worker's memory and environment nor signal it;
//! - Landlock, so the program sees its scratch folder, a read-only system and the folders of the plan, and can signal nothing
//!   outside;
//! - no new privileges, no core dumps, and the plan's limits on processes, memory, file size and CPUs;
//! - no network, if the plan says so.
//!
//! The supervisor adopts every orphan of the program, even a daemon in a session of its own, and ends only when the last of
//! them is dead. It kills all of them when the worker closes the supervisor's standard input, so a worker that dies by
//! `kill -9` leaves nothing running.
//!
//! ```text
//! worker ── stdin: "t" (terminate), end of file (kill) ──▶ supervisor ── spawn, restricted ──▶ program ─▶ children
//!        ◀── exit code or signal of the program ──────────            ◀── adopts orphans ──────────────────┘
//! ```

mod descendants;
mod plan;
mod restrict;
mod supervisor;
mod users;

pub use plan::{Limits, Network, Plan};
pub use restrict::{Enforced, probe};
pub use supervisor::{TERMINATE, can_supervise, supervise, supervisor_arguments, supervisor_environment};
pub use users::{TaskUser, TaskUsers};

/// Hides the memory and the environment of this process from programs that run as the same user.
///
/// It has no effect on programs that run as root; under root, programs run as another user.
pub fn protect_this_process() {
    // Where the system refuses, `probe` has nothing better to offer either.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
