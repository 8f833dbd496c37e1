//! How large workflows become once all that they share is written out: a reusable task in each of its uses, a template in each
//! workflow that extends it, a script in each task that runs it, an alias wherever it stands. Short files stay small workflows.

use std::fmt;

use crate::node::{Data, Node};

const MEBIBYTE: usize = 1024 * 1024;
/// What one workflow may take from other files, in bytes.
pub(crate) const MAX_WORKFLOW: usize = 4 * MEBIBYTE;
/// What all workflows that are compiled together may take.
const MAX_TOGETHER: usize = 16 * MEBIBYTE;

/// What a value counts beside its text, and what a mapping counts beside its entries: that much memory it takes at least.
const VALUE: usize = 8;
const MAPPING: usize = 64;

/// What the workflow at hand, and all that are compiled together, may still take.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    workflow: usize,
    together: usize,
    is_spent: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { workflow: MAX_WORKFLOW, together: MAX_TOGETHER, is_spent: false }
    }
}

/// Which allowance is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Excess {
    Workflow,
    Together,
}

impl Allowance {
    /// Begins with another file, or another workflow.
    pub(crate) fn begin(&mut self) {
        *self = Self { together: self.together, ..Self::default() };
    }

    /// Takes bytes. Once there were too few, the workflow gets no more.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Excess> {
        let excess = if bytes > self.workflow { Excess::Workflow } else { Excess::Together };
        match (self.workflow.checked_sub(bytes), self.together.checked_sub(bytes)) {
            (Some(workflow), Some(together)) if !self.is_spent => {
                (self.workflow, self.together) = (workflow, together);
                Ok(())
            }
            _ => {
                self.is_spent = true;
                Err(excess)
            }
        }
    }

    /// Whether the workflow at hand has taken too much, which was reported.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent
    }
}

impl Excess {
    /// What to do about it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Workflow => "split the workflow, or keep data elsewhere",
            Self::Together => "send fewer files at a time, or keep data elsewhere",
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, most, together) = match self {
            Self::Workflow => ("the workflow has", MAX_WORKFLOW, ""),
            Self::Together => ("the workflows have", MAX_TOGETHER, " together"),
        };
        let most = most / MEBIBYTE;
        let rule = "each use of something shared is written out";
        write!(f, "{rule}, and with this one {whose} more than the {most} MiB allowed{together}")
    }
}

/// What a tree counts, in bytes.
pub(crate) fn weight(node: &Node) -> usize {
    VALUE
        + match &node.data {
            Data::Null | Data::Bool(_) | Data::Number(_) => VALUE,
            Data::Text(text) => text.len(),
            Data::List(items) => items.iter().map(weight).sum(),
            Data::Map(entries) => {
                MAPPING
                    + entries.iter().map(|(key, node)| VALUE + key.name.len() + weight(node)).sum::<usize>()
            }
        }
}

/// The bytes of all texts in a tree, which aliases may repeat.
pub(crate) fn texts(node: &Node) -> usize {
    match &node.data {
        Data::Null | Data::Bool(_) | Data::Number(_) => 0,
        Data::Text(text) => text.len(),
        Data::List(items) => items.iter().map(texts).sum(),
        Data::Map(entries) => entries.iter().map(|(key, node)| key.name.len() + texts(node)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_that_took_too_much_gets_no_more_and_the_next_one_does() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.take(MAX_WORKFLOW), Ok(()));
        assert_eq!((allowance.take(1), allowance.is_spent()), (Err(Excess::Workflow), true));
        assert!(allowance.take(0).is_err());
        allowance.begin();
        assert_eq!((allowance.take(1), allowance.is_spent()), (Ok(()), false));
    }

    #[test]
    fn all_workflows_together_have_an_allowance_too() {
        let mut allowance = Allowance::default();
        for _ in 0..MAX_TOGETHER / MAX_WORKFLOW {
            allowance.begin();
            assert_eq!(allowance.take(MAX_WORKFLOW), Ok(()));
        }
        allowance.begin();
        assert_eq!(allowance.take(1), Err(Excess::Together));
    }
}
