//! The problems of files with definitions, where a process loads them from a folder.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use runtime::Diagnostic;

/// The problems that the files of a watched folder have now; none where no folder is watched. Clones share them.
#[derive(Clone, Default)]
pub struct FileProblems(Arc<Mutex<Vec<Diagnostic>>>);

impl FileProblems {
    /// All of them, by file.
    pub fn current(&self) -> Vec<Diagnostic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them by what was found now, and returns those of before.
    pub fn replace(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), found)
    }
}
