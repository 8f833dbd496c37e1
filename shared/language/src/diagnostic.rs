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

/// The problem, with who has it if it shows only where a template is extended.
fn naming(mut diagnostic: Diagnostic, heirs: &[Option<usize>], files: &[(&str, &str)]) -> Diagnostic {
    if let [Some(first), others @ ..] = heirs {
        let first = files[*first].0;
        let heirs = match others.len() {
            0 => format!("{first} extends"),
            1 => format!("{first} and 1 other extend"),
            more => format!("{first} and {more} others extend"),
        };
        diagnostic.message = format!("as {heirs} it: {}", diagnostic.message);
    }
    diagnostic
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

/// Gathers the problems of files that are read together.
pub struct Report<'f> {
    /// The path and the text of each file.
    files: Vec<(&'f str, &'f str)>,
    /// Each with the workflow that was examined, if it stands in a template that this workflow extends.
    found: Vec<(Diagnostic, Option<usize>)>,
    /// The task under examination. What is wrong with it in another file is wrong only because of how it is
    /// used, and is reported where that is.
    pub(crate) user: Option<Place>,
    /// The file under examination, if it extends a template. What it wrote itself is always reported where it stands.
    pub(crate) heir: Option<usize>,
}

impl<'f> Report<'f> {
    /// A report on files that are compiled together.
    pub(crate) fn new(files: &'f [SourceFile]) -> Self {
        let files = files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
        Self { files, found: Vec::new(), user: None, heir: None }
    }

    /// An empty report on the same files, of which only a part may be of use.
    pub(crate) fn aside(&self) -> Self {
        Self { files: self.files.clone(), found: Vec::new(), user: None, heir: None }
    }

    /// Takes over what is of use in a report that was made aside.
    pub(crate) fn take_over(&mut self, aside: Self, of_use: impl Fn(&Diagnostic) -> bool) {
        self.found.extend(aside.found.into_iter().filter(|(diagnostic, _)| of_use(diagnostic)));
    }

    /// A report on a document of another kind, which stands for itself.
    pub fn on(path: &'f str, text: &'f str) -> Self {
        Self { files: vec![(path, text)], found: Vec::new(), user: None, heir: None }
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: usize) -> &'f str {
        self.files[file].1
    }

    /// How many problems there are so far; no more afterwards means that what was read is sound.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// Adds a problem.
    pub fn add(&mut self, at: &Place, message: impl Into<String>, hint: Option<String>) {
        let message = message.into();
        let (at, message) = match &self.user {
            Some(user) if user.file != at.file && self.heir != Some(at.file) => {
                (user, format!("{} ({}): {message}", self.location(at), at.path))
            }
            _ => (at, message),
        };
        let file = self.files[at.file].0.to_owned();
        let (line, column, path) = (at.line, at.column, at.path.clone());
        let heir = self.heir.filter(|heir| *heir != at.file);
        self.found.push((Diagnostic { file, line, column, path, message, hint }, heir));
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(&finding.at, finding.message, finding.hint));
    }

    /// `path:line` of a place, to point to it from a message.
    pub(crate) fn location(&self, at: &Place) -> String {
        format!("{}:{}", self.files[at.file].0, at.line)
    }

    /// The place of `part`, which stands at byte `offset` of the string that begins at `at`.
    ///
    /// Quotes, folding and indentation make counting columns unreliable, so the part is looked up in the
    /// file's own text: it is the same there unless it holds an escape.
    pub(crate) fn inside(&self, at: &Place, string: &str, part: &str, offset: usize) -> Place {
        let text = self.text(at.file);
        let earlier = string.get(..offset).map_or(0, |before| before.matches(part).count());
        let found = text.get(at.offset..).and_then(|rest| rest.match_indices(part).nth(earlier));
        match found {
            Some((start, _)) if !part.is_empty() => at.moved_to(text, at.offset + start),
            _ => at.clone(),
        }
    }

    /// Every problem once, by file, line and column.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        let mut told: Vec<(Diagnostic, Vec<Option<usize>>)> = Vec::new();
        for (diagnostic, heir) in self.found {
            match told.last_mut() {
                Some((last, heirs)) if *last == diagnostic => heirs.push(heir),
                _ => told.push((diagnostic, vec![heir])),
            }
        }
        told.into_iter().map(|(diagnostic, heirs)| naming(diagnostic, &heirs, &self.files)).collect()
    }
}
