//! Pictures of a workflow's graph: [`text()`] for a terminal, [`svg()`] for everything else. No I/O, no clock, no async:
//! the same graph gives the same picture.
//!
//! A [`Layout`] is made in three steps: tasks get columns and long edges get dummy nodes (`columns`), each column gets
//! the order with few crossings (`order`), and everything gets a height that keeps edges straight (`heights`).

mod columns;
mod heights;
mod label;
mod layout;
mod order;
mod svg;
mod text;

pub use label::{kind, short};
pub use layout::{Edge, Layout, Point, Rect, Room};
pub use svg::svg;
pub use text::text;
