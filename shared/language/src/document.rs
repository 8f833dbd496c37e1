//! YAML documents of other kinds than workflows, read as these are: with positions, and every problem at once.

pub use crate::diagnostic::Report;
pub use crate::node::{Data, Key, Node, Place};
pub use crate::read::{Fields, Word, choice, entries, flag, list, text, texts, whole};
pub use crate::suggest::hint;

use crate::yaml;

/// Reads the YAML of the document that a report is on; what is wrong with it is reported.
pub fn parse(report: &mut Report<'_>) -> Option<Node> {
    let (root, findings) = yaml::parse(0, report.text(0));
    report.extend(findings);
    root
}
