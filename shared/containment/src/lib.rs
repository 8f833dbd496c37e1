//! Runs a task's program apart from its worker.
//!
//! A worker does not start the program itself. It starts its own executable again as a **zygote** ([`serve`]), once, and the
//! zygote forks a **supervisor** for each attempt, which starts the program under a [`Plan`]:
//!
//! - another user, where the worker is root, so the program can neither read the worker's memory and environment nor signal it;
//! - Landlock, so the program sees its scratch folder, a read-only system and the folders of the plan, and can signal nothing
//!   outside;
//! - no new privileges, no core dumps, and the plan's limits on processes, memory, file size and CPUs;
//! - no network, if the plan says so;
//! - a control group of its own, where the worker may create one, whose limits hold for all its processes together.
//!
//! The supervisor adopts every orphan of the program, even a daemon in a session of its own, and ends only when the last of
//! them is dead. It kills all of them when the worker closes its side of the attempt's socket, so a worker that dies by
//! `kill -9` leaves nothing running. If a supervisor is killed itself, the zygote adopts the processes it leaves, and kills them.
//!
//! ```text
//! worker ── socket and pipes of an attempt ──▶ zygote ── fork ──▶ supervisor ── fork, restrict, exec ──▶ program ─▶ children
//!        ── request; "t" (terminate); end of file (kill) ──────▶            ◀── adopts orphans ────────────────┘
//!        ◀── report: how the program ended, and what it used ──
//! ```
//!
//! Why a zygote: executing a large program costs its relocations each time, several times the total cost of a small program.
//! Forking a process that has done nothing yet costs little. The zygote has a single thread and an empty
//! environment, and never sees a request: each supervisor reads its own.

mod descendants;
mod disk;
mod fork;
mod groups;
mod messages;
mod plan;
mod restrict;
mod supervisor;
mod supervisors;
mod users;
mod zygote;

pub use groups::{ControlGroup, ControlGroups, Controllers};
pub use messages::{Excess, Report, Request, Usage};
pub use plan::{Limits, Network, Plan};
pub use restrict::{Enforced, probe};
pub use supervisor::TERMINATE;
pub use supervisors::Supervisors;
pub use users::{TaskUser, TaskUsers};
pub use zygote::{can_supervise, serve};

/// Hides the memory and the environment of this process from programs that run as the same user.
///
/// It has no effect on programs that run as root; under root, programs run as another user.
pub fn protect_this_process() {
    // Where the system refuses, `probe` has nothing better to offer either.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
