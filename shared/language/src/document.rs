//! YAML documents of other kinds than workflows, read in the same way: with positions, and every problem at once.

pub use crate::diagnostic::Report;
pub use crate::node::{Data, Key, Node, Position};
pub use crate::read::Word;
pub use crate::shape::{Given, Record};
pub use crate::suggest::hint;
pub use crate::test_file::*;

use crate::yaml;

/// Reads the YAML of the document that a report is on; what is wrong with it is reported.
pub fn parse(report: &mut Report<'_>) -> Option<Node> {
    let (root, findings) = yaml::parse(0, report.text(0));
    report.extend(findings);
    root
}
