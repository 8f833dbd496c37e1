//! A problem as people and answers see it, and the report that gathers problems.

use std::fmt;

use serde::Serialize;

use crate::SourceFile;
use crate::node::Place;

/// One problem in one file: where it is, what is wrong, and where possible how to put it right.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Diagnostic {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The place in the document, such as `tasks[2].depends_on[0]`; empty for the whole of it.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// How to put it right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// A problem before it is known how its file is called.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) at: Place,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Finding {
    /// The problem without its position, for values that come from no file.
    pub(crate) fn in_words(self) -> String {
        let path = if self.at.path.is_empty() { String::new() } else { format!("{}: ", self.at.path) };
        let hint = self.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{path}{}{hint}", self.message)
    }
}

/// With more problems than this, nobody asks where in its text each of them is, which takes a search.
const MANY: usize = 1_000;

/// Gathers the problems of a compilation.
pub(crate) struct Report<'f> {
    files: &'f [SourceFile],
    found: Vec<Diagnostic>,
    /// The task under examination. What is wrong with it in another file is wrong only because of how it is
    /// used, and is reported where that is.
    pub(crate) user: Option<Place>,
}

impl<'f> Report<'f> {
    pub(crate) fn new(files: &'f [SourceFile]) -> Self {
        Self { files, found: Vec::new(), user: None }
    }

    /// How many problems there are so far; no more afterwards means that what was read is sound.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn add(&mut self, at: &Place, message: impl Into<String>, hint: Option<String>) {
        let message = message.into();
        let (at, message) = match &self.user {
            Some(user) if user.file != at.file => {
                (user, format!("{} ({}): {message}", self.location(at), at.path))
            }
            _ => (at, message),
        };
        let file = self.files[at.file].path.clone();
        let (line, column, path) = (at.line, at.column, at.path.clone());
        self.found.push(Diagnostic { file, line, column, path, message, hint });
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(&finding.at, finding.message, finding.hint));
    }

    /// `path:line` of a place, to point to it from a message.
    pub(crate) fn location(&self, at: &Place) -> String {
        format!("{}:{}", self.files[at.file].path, at.line)
    }

    /// The place of `part`, which stands at byte `offset` of the string that begins at `at`.
    ///
    /// Quotes, folding and indentation make counting columns unreliable, so the part is looked up in the
    /// file's own text: it is the same there unless it holds an escape.
    pub(crate) fn inside(&self, at: &Place, string: &str, part: &str, offset: usize) -> Place {
        if self.found.len() > MANY {
            return at.clone();
        }
        let text = &self.files[at.file].text;
        let earlier = string.get(..offset).map_or(0, |before| before.matches(part).count());
        let found = text.get(at.offset..).and_then(|rest| rest.match_indices(part).nth(earlier));
        match found {
            Some((start, _)) if !part.is_empty() => at.moved_to(text, at.offset + start),
            _ => at.clone(),
        }
    }

    /// Every problem once, by file, line and column.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}
