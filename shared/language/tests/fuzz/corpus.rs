//! What mutations begin with: the golden files, the examples, and every text in the other tests.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

pub(crate) static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::read);

pub(crate) struct Corpus {
    /// Whole files of YAML.
    pub(crate) files: Vec<String>,
    /// The same as trees, as far as they can be read.
    pub(crate) trees: Vec<Value>,
    /// Whole files of reusable tasks.
    pub(crate) tasks: Vec<String>,
    /// Expressions, templates and commands.
    pub(crate) texts: Vec<String>,
}

impl Corpus {
    fn read() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = |name: &str| contents(&here.join(name), ".yaml");
        let mut files = folder("tests/golden/valid");
        files.extend(folder("tests/golden/invalid"));
        files.extend(folder("../../workflows/graphs"));
        let mut tasks = folder("tests/golden/tasks");
        tasks.extend(folder("../../workflows/tasks"));
        let read = |text: &String| serde_saphyr::from_str::<Value>(text).ok();
        let trees = files.iter().chain(&tasks).filter_map(read).collect();
        let texts = contents(&here.join("tests"), ".rs").iter().flat_map(|code| literals(code)).collect();
        Self { files, trees, tasks, texts }
    }
}

fn contents(folder: &Path, ending: &str) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    assert!(!paths.is_empty(), "{} holds nothing to begin with", folder.display());
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The texts in quotes of a source file; what is misread is as good a beginning as any.
fn literals(code: &str) -> Vec<String> {
    let pieces = code.split('"').skip(1).step_by(2);
    pieces.filter(|piece| piece.len() > 1).map(|piece| piece.replace("\\n", "\n")).collect()
}
