//! Links of Markdown documents: `[text](target)`, checked without a network.

use std::fs;
use std::path::Path;

pub(crate) struct Link {
    /// The file, relative to the document; empty for an anchor of the document itself.
    pub(crate) target: String,
    anchor: Option<String>,
}

/// The links of a document to other files and to its own headings.
pub(crate) fn in_document(document: &Path) -> Vec<Link> {
    let text = prose(&fs::read_to_string(document).unwrap());
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    local
        .map(|target| {
            let (file, anchor) =
                target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
            Link { target: file.to_owned(), anchor: anchor.map(str::to_owned) }
        })
        .collect()
}

/// What is wrong with the links of a document, in words.
pub(crate) fn broken(document: &Path) -> Vec<String> {
    let folder = document.parent().unwrap();
    let wrong = |link: Link| {
        let target = if link.target.is_empty() { document.to_owned() } else { folder.join(&link.target) };
        if !target.exists() {
            return Some(format!("{}: there is no `{}`", document.display(), link.target));
        }
        let anchor = link.anchor?;
        let is_there = anchors(&fs::read_to_string(&target).ok()?).contains(&anchor);
        (!is_there)
            .then(|| format!("{}: `{}` has no heading `#{anchor}`", document.display(), target.display()))
    };
    in_document(document).into_iter().filter_map(wrong).collect()
}

/// The anchors of a document's headings, as GitHub and mdBook derive them.
fn anchors(text: &str) -> Vec<String> {
    let headings = without_code(text);
    let headings = headings.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.trim().to_lowercase())
    });
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// The text without code blocks and without code between backticks, in which brackets are no links.
fn prose(text: &str) -> String {
    let text = without_code(text);
    let lines = text.lines().map(|line| line.split('`').step_by(2).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

fn without_code(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}
