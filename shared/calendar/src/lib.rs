//! The instants of schedules. Everything here is pure: the same schedule and the same instant give the same answer.
//!
//! - [`pattern`]: cron patterns, as sets of seconds, minutes, hours, days, months and weekdays.
//! - [`wall`]: the local times of a time zone, and the instants at which its clocks show them.
//! - [`Calendar`]: a schedule's instants, forwards and backwards, always within a bounded search.
//! - [`due()`]: which of them get a run now.

mod calendar;
mod days;
mod drift;
mod due;
pub mod pattern;
pub mod wall;

pub use calendar::{Calendar, Unreadable};
pub use drift::Drift;
pub use due::{CatchupRequest, Due, GRACE, Progress, due};
pub use pattern::Pattern;
