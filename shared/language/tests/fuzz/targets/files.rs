//! Files of YAML, as workflows, as reusable tasks, and all kinds together.

use std::collections::BTreeMap;

use ebbflow_language::{Compilation, Diagnostic, FileKind, SourceFile, compile};
use engine::Graph;

use crate::corpus::CORPUS;
use crate::harness::Target;
use crate::random::Random;
use crate::{bombs, mutate, words, yaml};

pub(crate) static TARGET: Target =
    Target { name: "files_are_compiled", share: 40, make, check: |texts, random| check(texts, random) };

fn make(random: &mut Random) -> Vec<String> {
    if !random.one_in(8) {
        return (0..=random.below(2)).map(|_| yaml::any_file(random)).collect();
    }
    let mut files = bombs::shared(random);
    if random.one_in(2) {
        let at = random.below(files.len());
        let changed = std::mem::take(&mut files[at]);
        files[at] = mutate::text(changed, &CORPUS.files, words::KEYS, random);
    }
    files
}

fn check(texts: &[String], random: &mut Random) {
    let files: Vec<SourceFile> = texts.iter().map(|text| file(text, random)).collect();
    let first = outcome(&compile(&files));
    let compiled = compile(&files);
    let mut lengths: BTreeMap<&str, Vec<Vec<usize>>> = BTreeMap::new();
    files.iter().for_each(|file| lengths.entry(&file.path).or_default().push(lines(file)));
    compiled.diagnostics.iter().for_each(|diagnostic| lies_inside(diagnostic, &lengths));
    assert_eq!(outcome(&compiled), first, "the same files give the same answer");
    check_definitions(compiled);
}

fn file(text: &str, random: &mut Random) -> SourceFile {
    if let Some((kind, path)) = place(text) {
        return SourceFile { path: path.to_owned(), kind, text: text.to_owned() };
    }
    let kind = if random.one_in(3) { FileKind::Task } else { FileKind::Workflow };
    // Without an ending, the name in the file may be any.
    let path = if random.one_in(4) { "graphs/a.yaml" } else { "inline" };
    SourceFile { path: path.to_owned(), kind, text: text.to_owned() }
}

/// What files came to, without the definitions themselves: two of each take twice the memory.
fn outcome(compiled: &Compilation) -> (Vec<String>, Vec<Diagnostic>) {
    let hashes = compiled.definitions.iter().map(|definition| definition.hash.clone()).collect();
    (hashes, compiled.diagnostics.clone())
}

/// What a file is, if its first line is its path.
fn place(text: &str) -> Option<(FileKind, &str)> {
    let path = text.lines().next()?.strip_prefix("# ")?;
    let kind = match path.split_once('/')?.0 {
        "graphs" => FileKind::Workflow,
        "tasks" => FileKind::Task,
        "templates" => FileKind::Template,
        "types" => FileKind::Type,
        "queues" => FileKind::Queue,
        "scripts" => FileKind::Script,
        _ => return None,
    };
    Some((kind, path))
}

/// The characters of each line of a file. A line ends with any of the usual marks.
fn lines(file: &SourceFile) -> Vec<usize> {
    let text =
        file.text.strip_prefix('\u{feff}').unwrap_or(&file.text).replace("\r\n", "\n").replace('\r', "\n");
    text.split('\n').map(|line| line.chars().count()).collect()
}

fn lies_inside(diagnostic: &Diagnostic, files: &BTreeMap<&str, Vec<Vec<usize>>>) {
    let (line, column) = (diagnostic.line as usize, diagnostic.column as usize);
    let inside = |lines: &Vec<usize>| {
        // A problem may be that the text or the line ends.
        let after = line == lines.len() + 1 && column == 1;
        after || lines.get(line - 1).is_some_and(|length| column <= length + 2)
    };
    assert!(line > 0 && column > 0, "{diagnostic}");
    let of_path = files.get(diagnostic.file.as_str());
    assert!(of_path.is_some_and(|files| files.iter().any(inside)), "{diagnostic}");
    assert!(!diagnostic.message.is_empty(), "{diagnostic}");
}

/// A definition that exists has no cycles, and is the same when it is compiled again by itself.
fn check_definitions(compiled: Compilation) {
    for definition in compiled.definitions {
        assert_eq!(definition.hash.len(), 64);
        let written = serde_json::to_string(&definition.workflow).unwrap();
        assert_eq!(serde_json::from_str::<model::Workflow>(&written).unwrap(), definition.workflow);
        assert!(Graph::compile(definition.workflow).is_ok(), "a cycle");
    }
}
