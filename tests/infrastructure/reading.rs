//! Reading the repository as text: as much of HCL and Rust as its own files use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The texts of the repository by their paths. Of Rust, what is not a test.
pub(crate) struct Repository {
    texts: BTreeMap<String, String>,
}

impl Repository {
    pub(crate) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut texts = BTreeMap::new();
        for part in ["cli/src", "shared", "functions", "terraform", "docs", "deploy", "migrations"] {
            for path in files(&root.join(part)) {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                let test = ["/tests/", "/tests.rs", "/templates/"].iter().any(|part| name.contains(part));
                if let Some(text) = fs::read_to_string(&path).ok().filter(|_| !test) {
                    texts.insert(name, product(&text).to_owned());
                }
            }
        }
        let top = [
            ".ci/run",
            "ARCHITECTURE.md",
            "Dockerfile",
            "README.md",
            "cloudbuild.yaml",
            "deny.toml",
            "docker-compose.yml",
            "rust-toolchain.toml",
            "tools/deploy-test/checks.py",
        ];
        for name in top {
            texts.insert(name.into(), fs::read_to_string(root.join(name)).unwrap());
        }
        Self { texts }
    }

    /// The text of one file.
    pub(crate) fn file(&self, path: &str) -> &str {
        self.texts.get(path).unwrap_or_else(|| panic!("{path} is missing"))
    }

    /// The files below a folder.
    pub(crate) fn files(&self, folder: &str) -> impl Iterator<Item = (&String, &String)> {
        self.texts.iter().filter(move |(path, _)| path.starts_with(folder))
    }

    /// The Rust files below a folder.
    pub(crate) fn code(&self, folder: &str) -> impl Iterator<Item = (&String, &String)> {
        self.files(folder).filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The module's files as one.
    pub(crate) fn terraform(&self) -> String {
        let module = self
            .files("terraform/")
            .filter(|(path, _)| path.matches('/').count() == 1 && path.ends_with(".tf"));
        module.map(|(_, text)| text.as_str()).collect()
    }

    /// The names of the functions' folders.
    pub(crate) fn functions(&self) -> BTreeSet<String> {
        self.files("functions/").filter_map(|(path, _)| path.split('/').nth(1)).map(str::to_owned).collect()
    }

    /// The subcommands of `ebb`.
    pub(crate) fn commands(&self) -> BTreeSet<String> {
        let lists = [("cli/src/args.rs", "pub enum Command {"), ("cli/src/cli.rs", "enum Top {")];
        let variants = lists.iter().flat_map(|(path, start)| inside(self.file(path), start).lines());
        let variants = variants
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with(char::is_uppercase));
        variants.map(|line| kebab(line.split([',', '(', ' ']).next().unwrap())).collect()
    }

    /// Replaces a text in a file by a mistake.
    pub(crate) fn plant(&mut self, path: &str, right: &str, wrong: &str) {
        let text = self.texts.get_mut(path).unwrap();
        assert!(text.contains(right), "{path} does not say `{right}`");
        *text = text.replace(right, wrong);
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let visible = entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
    visible.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The text up to its tests.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

fn kebab(name: &str) -> String {
    let dashed = name.char_indices().map(|(at, letter)| match letter.is_uppercase() && at > 0 {
        true => format!("-{}", letter.to_lowercase()),
        false => letter.to_lowercase().to_string(),
    });
    dashed.collect()
}

/// The text between the bracket that ends `start` and the one that closes it, or nothing if `start` is missing.
pub(crate) fn inside<'a>(text: &'a str, start: &str) -> &'a str {
    let Some(at) = text.find(start) else { return "" };
    let rest = &text[at + start.len()..];
    let mut depth = 1;
    let end = rest.find(|letter| {
        depth += match letter {
            '{' | '(' | '[' => 1,
            '}' | ')' | ']' => -1,
            _ => 0,
        };
        depth == 0
    });
    &rest[..end.unwrap_or(rest.len())]
}

/// The bodies of HCL blocks that begin like this, by the name that follows.
pub(crate) fn definitions(text: &str, start: &str) -> BTreeMap<String, String> {
    let headers =
        text.lines().filter_map(|line| Some((line, line.strip_prefix(start)?.strip_suffix("\" {")?)));
    headers
        .map(|(line, name)| (name.trim_start_matches('"').to_owned(), inside(text, line).to_owned()))
        .collect()
}

/// The names that are given values at the top of an HCL object, or in the objects that are merged into it.
pub(crate) fn attributes(object: &str) -> Vec<String> {
    let lines = object.lines().filter(|line| !line.trim_start().starts_with('#'));
    let named: Vec<(usize, &str)> = lines
        .filter_map(|line| Some((line.len() - line.trim_start().len(), line.split_once(" = ")?.0.trim())))
        .filter(|(_, name)| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'))
        .collect();
    let top = named.iter().map(|(indent, _)| *indent).min();
    named.iter().filter(|(indent, _)| Some(*indent) == top).map(|(_, name)| (*name).to_owned()).collect()
}

/// The string literals of a text, as they are written.
pub(crate) fn literals(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find('"')? + 1;
        let mut escaped = false;
        let length = rest[start..].find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        })?;
        let literal = &rest[start..start + length];
        rest = &rest[start + length + 1..];
        Some(literal)
    })
}

/// What follows each `start` up to the next quotation mark.
pub(crate) fn quoted(text: &str, start: &str) -> BTreeSet<String> {
    text.split(start).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The words that begin with the last word of `start`, wherever `start` occurs. `EBB_` alone is not a word.
pub(crate) fn words(text: &str, start: &str, letter: impl Fn(char) -> bool + Copy) -> BTreeSet<String> {
    let kept = start.rfind(['"', '(', '[']).map_or(0, |at| at + 1);
    let beginning = start[kept..].trim_start_matches("serve, ");
    let rests = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
    let words = rests.map(|rest| rest.split(|c| !letter(c)).next().unwrap_or_default());
    words.filter(|word| !word.is_empty()).map(|word| format!("{beginning}{word}")).collect()
}

/// Whether a text contains a name as a whole word.
pub(crate) fn one_of(text: &str, name: &str) -> bool {
    let follows = |at: usize| text[at + name.len()..].chars().next();
    text.match_indices(name)
        .any(|(at, _)| !follows(at).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_'))
}
