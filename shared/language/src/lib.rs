//! The workflow language: YAML files to valid definitions, templates to values.
//!
//! Nothing here reads a file, a clock or the network: callers bring the text and get back definitions and
//! every problem at once, each with its position. The modules in reading order:
//!
//! - [`compile()`]: files in, definitions and diagnostics out.
//! - [`document`]: the same reading for YAML of other kinds, such as tests.
//! - `shape`: descriptions of values. Each gives a reader, its diagnostics and its JSON Schema.
//! - `yaml`, `node`, `read`: text to a tree that knows its positions, and the tree to typed values.
//! - `blueprint`: workflow templates, and workflows with everything that they inherit.
//! - `workflow`, `schedule`, `concurrency`, `callbacks`, `triggers`, `task`, `library`, `retry`, `dependencies`, `switch`, `fan`,
//!   `names`, `test_file`: the fields of files, one concern each.
//! - `queue`: the queues that tasks may name.
//! - `custom_type`: task types that users declare, with the schemas of their settings and outputs.
//! - [`inputs`]: typed inputs, as declared and as given.
//! - [`Schema`]: the same as JSON Schema, for editors.
//! - [`types`], [`config`], `schema`: the task types and their settings; `scripts`: the files that programs consist of.
//! - [`template`]: `{{ … }}`, checked at registration and rendered when a task is dispatched.
//! - [`expression`]: the same without braces, in `when`, `cases`, `for_each` and `transform`.

mod allowance;
mod blueprint;
mod breaker;
mod callbacks;
mod compile;
mod concurrency;
pub mod config;
mod custom_type;
mod dependencies;
mod diagnostic;
pub mod document;
pub mod duration;
mod fan;
pub mod inputs;
mod json_schema;
mod labels;
mod library;
mod names;
mod node;
mod queue;
mod read;
mod resources;
mod retry;
mod schedule;
mod schema;
mod scripts;
mod shape;
mod size;
mod suggest;
mod switch;
mod task;
pub mod template;
mod test_file;
mod triggers;
pub mod types;
mod workflow;
mod yaml;

pub use compile::{Compilation, Definition, FileKind, SourceFile, compile, compile_for, referenced_files};
pub use custom_type::{OutputError, TypeChecks};
pub use diagnostic::Diagnostic;
pub use json_schema::Schema;
pub use schedule::zone_hint;
pub use suggest::nearest;
pub use template::expression;
