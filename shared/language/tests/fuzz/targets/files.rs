//! Files of YAML, as workflows, as reusable tasks, and both together.

use ebbflow_language::{Compilation, Diagnostic, FileKind, SourceFile, compile};
use engine::Graph;

use crate::harness::Target;
use crate::random::Random;
use crate::yaml;

pub(crate) static TARGET: Target =
    Target { name: "files_are_compiled", share: 40, make, check: |texts, random| check(texts, random) };

fn make(random: &mut Random) -> Vec<String> {
    (0..=random.below(2)).map(|_| yaml::any_file(random)).collect()
}

fn check(texts: &[String], random: &mut Random) {
    let files: Vec<SourceFile> = texts.iter().map(|text| file(text, random)).collect();
    let compiled = compile(&files);
    let lengths: Vec<_> = files.iter().map(|file| (file.path.as_str(), lines(file))).collect();
    compiled.diagnostics.iter().for_each(|diagnostic| lies_inside(diagnostic, &lengths));
    assert_eq!(compile(&files), compiled, "the same files give the same answer");
    check_definitions(compiled);
}

fn file(text: &str, random: &mut Random) -> SourceFile {
    let kind = if random.one_in(3) { FileKind::Task } else { FileKind::Workflow };
    // Without an ending, the name in the file may be any.
    let path = if random.one_in(4) { "graphs/a.yaml" } else { "inline" };
    SourceFile { path: path.to_owned(), kind, text: text.to_owned() }
}

/// The characters of each line of a file. A line ends with any of the usual marks.
fn lines(file: &SourceFile) -> Vec<usize> {
    let text =
        file.text.strip_prefix('\u{feff}').unwrap_or(&file.text).replace("\r\n", "\n").replace('\r', "\n");
    text.split('\n').map(|line| line.chars().count()).collect()
}

fn lies_inside(diagnostic: &Diagnostic, files: &[(&str, Vec<usize>)]) {
    let (line, column) = (diagnostic.line as usize, diagnostic.column as usize);
    let inside = |lines: &[usize]| {
        // A problem may be that the text or the line ends.
        let after = line == lines.len() + 1 && column == 1;
        after || lines.get(line - 1).is_some_and(|length| column <= length + 2)
    };
    assert!(line > 0 && column > 0, "{diagnostic}");
    assert!(files.iter().any(|(path, lines)| *path == diagnostic.file && inside(lines)), "{diagnostic}");
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
