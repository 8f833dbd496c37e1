//! A problem as people and answers see it, and the report that gathers problems.

use std::fmt;

use serde::Serialize;

use crate::SourceFile;
use crate::allowance::Allowance;
use crate::node::Position;
use crate::suggest::Budget;

/// One problem in one file: where it is, what is wrong, and where possible how to put it right.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Diagnostic {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The path in the document, such as `tasks[2].depends_on[0]`; empty for the whole of it.
    pub path: String,
    /// The problem, in a sentence.
    pub message: String,
    /// How to put it right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How many problems it stands for: itself, or all that are not shown.
    #[serde(skip)]
    pub count: usize,
}

impl Diagnostic {
    /// A problem of a whole file, such as one that cannot be read.
    pub fn of_file(file: String, message: String) -> Self {
        Self { file, line: 1, column: 1, path: String::new(), message, hint: None, count: 1 }
    }

    /// The first of these problems, and if there are more, a line that counts them where the next one is.
    pub fn first(mut problems: Vec<Self>, limit: usize) -> Vec<Self> {
        let rest = problems.split_off(limit.min(problems.len()));
        let count = rest.iter().map(|problem| problem.count).sum();
        problems.extend(rest.into_iter().next().map(|next| next.rest(count)));
        problems
    }

    /// The line that stands for problems that are not shown; this is the next of them.
    fn rest(self, count: usize) -> Self {
        let message = format!("and {} more", grouped(count));
        Self { path: String::new(), message, hint: None, count, ..self }
    }
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
    pub(crate) at: Position,
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

/// The maximum number of problems shown of one file; the rest are counted.
pub(crate) const MAX_PROBLEMS: usize = 100;
/// The maximum number of problems kept of one file, before those that are the same become one.
const MAX_KEPT: usize = 10 * MAX_PROBLEMS;

/// The maximum length of the path that a problem shows, in characters.
const MAX_PATH: usize = 1_000;

/// Gathers the problems of files that are read together.
pub struct Report<'f> {
    /// The path and the text of each file.
    files: Vec<(&'f str, &'f str)>,
    /// The number of problems of each file, and of all.
    counts: Vec<usize>,
    count: usize,
    /// Each with the workflow under examination, if it is in a template that this workflow extends.
    found: Vec<(Diagnostic, Option<usize>)>,
    /// Asked whether to give up.
    pub(crate) stop: Option<&'f dyn Fn() -> bool>,
    /// The work that suggestions may take.
    pub(crate) budget: Budget,
    /// What workflows may take from other files.
    pub(crate) allowance: Allowance,
    /// The task under examination. A problem of it in another file arises only from how the task is used, and is
    /// reported at the use.
    pub(crate) user: Option<Position>,
    /// The file under examination, if it extends a template. Problems of its own text are always reported there.
    pub(crate) heir: Option<usize>,
}

impl<'f> Report<'f> {
    /// A report on files that are compiled together.
    pub(crate) fn new(files: &'f [SourceFile]) -> Self {
        Self::of(files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect())
    }

    /// A report on a document of another kind, which stands for itself.
    pub fn on(path: &'f str, text: &'f str) -> Self {
        Self::of(vec![(path, text)])
    }

    fn of(files: Vec<(&'f str, &'f str)>) -> Self {
        let counts = vec![0; files.len()];
        let (stop, user, heir, budget, allowance) = Default::default();
        Self { files, counts, count: 0, found: Vec::new(), stop, budget, allowance, user, heir }
    }

    /// An empty report on the same files, of which only a part may be of use.
    pub(crate) fn aside(&self) -> Self {
        let (budget, allowance) = (self.budget.clone(), self.allowance.clone());
        Self { stop: self.stop, budget, allowance, ..Self::of(self.files.clone()) }
    }

    /// Adds what is of use in a report that was made aside.
    pub(crate) fn take_over(&mut self, aside: Self, of_use: impl Fn(&Diagnostic) -> bool) {
        (self.budget, self.allowance) = (aside.budget, aside.allowance);
        for (diagnostic, heir) in aside.found.into_iter().filter(|(diagnostic, _)| of_use(diagnostic)) {
            let file = self.files.iter().position(|(path, _)| *path == diagnostic.file);
            self.keep(file.unwrap_or_default(), || (diagnostic, heir));
        }
    }

    /// Whether nobody waits for the result any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: usize) -> &'f str {
        self.files[file].1
    }

    /// The number of problems so far. If reading something adds none, it is valid.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a problem at a position, with a hint how to fix it.
    pub fn add(&mut self, at: &Position, message: impl Into<String>, hint: Option<String>) {
        let message = message.into();
        let (at, message) = match &self.user {
            Some(user) if user.file != at.file && self.heir != Some(at.file) => {
                (user, format!("{} ({}): {message}", self.location(at), at.path))
            }
            _ => (at, message),
        };
        let (path, heir) = (self.files[at.file].0, self.heir.filter(|heir| *heir != at.file));
        let (file, at) = (at.file, at.clone());
        self.keep(file, || {
            let Position { line, column, path: inner, .. } = at;
            let inner = cut(inner.to_string());
            (Diagnostic { file: path.to_owned(), line, column, path: inner, message, hint, count: 1 }, heir)
        });
    }

    /// Takes what a workflow gets from another file. Returns whether it may; the first time that it may not is reported at
    /// `at`, and later ones are not, since each of them has the same cause.
    pub(crate) fn take(&mut self, bytes: usize, at: impl FnOnce(&Self) -> Position) -> bool {
        let is_known = self.allowance.is_spent();
        let taken = self.allowance.take(bytes);
        if let Err(excess) = taken
            && !is_known
        {
            let at = at(self);
            self.add(&at, excess.to_string(), Some(excess.hint().to_owned()));
        }
        taken.is_ok()
    }

    /// Counts a problem, and keeps it unless its file has too many.
    fn keep(&mut self, file: usize, problem: impl FnOnce() -> (Diagnostic, Option<usize>)) {
        self.counts[file] += 1;
        self.count += 1;
        if self.counts[file] <= MAX_KEPT {
            self.found.push(problem());
        }
    }

    /// The hint that names the nearest candidate, or else all of them if they are few.
    pub(crate) fn suggest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        self.budget.hint(word, candidates)
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(&finding.at, finding.message, finding.hint));
    }

    /// `path:line` of a position, to point to it from a message.
    pub(crate) fn location(&self, at: &Position) -> String {
        format!("{}:{}", self.files[at.file].0, at.line)
    }

    /// The position of `part`, which is at byte `offset` of the string that begins at `at`.
    ///
    /// Quotes, folding and indentation make counting columns unreliable, so the part is looked up in the
    /// file's own text: it is the same there unless it holds an escape.
    pub(crate) fn inside(&self, at: &Position, string: &str, part: &str, offset: usize) -> Position {
        // It takes a search, and no more problems of this file will be shown.
        if self.counts[at.file] > MAX_PROBLEMS {
            return at.clone();
        }
        let text = self.text(at.file);
        let earlier = string.get(..offset).map_or(0, |before| before.matches(part).count());
        let found = text.get(at.offset..).and_then(|rest| rest.match_indices(part).nth(earlier));
        match found {
            Some((start, _)) if !part.is_empty() => at.moved_to(text, at.offset + start),
            _ => at.clone(),
        }
    }

    /// Every problem once, by file, line and column: at most `MAX_PROBLEMS` of each file, and then how many more.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        let mut unique: Vec<(Diagnostic, Vec<Option<usize>>)> = Vec::new();
        for (diagnostic, heir) in std::mem::take(&mut self.found) {
            match unique.last_mut() {
                Some((last, heirs)) if *last == diagnostic => heirs.push(heir),
                _ => unique.push((diagnostic, vec![heir])),
            }
        }
        let mut shown = Vec::new();
        for problems in unique.chunk_by(|(one, _), (next, _)| one.file == next.file) {
            let first = problems.iter().take(MAX_PROBLEMS);
            shown.extend(first.map(|(diagnostic, heirs)| naming(diagnostic.clone(), heirs, &self.files)));
            shown.extend(problems.get(MAX_PROBLEMS).map(|(next, _)| self.rest(next, problems.len())));
        }
        shown
    }

    /// The line that stands for all problems of a file that are not shown.
    fn rest(&self, next: &Diagnostic, kept: usize) -> Diagnostic {
        let file = self.files.iter().position(|(path, _)| *path == next.file);
        let dropped = file.map_or(0, |file| self.counts[file].saturating_sub(MAX_KEPT));
        next.clone().rest(kept - MAX_PROBLEMS + dropped)
    }
}

/// A path, of which the beginning is enough: each problem of a file has its own.
fn cut(mut path: String) -> String {
    if let Some((end, _)) = path.char_indices().nth(MAX_PATH) {
        path.replace_range(end.., "…");
    }
    path
}

/// A number with a comma between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
