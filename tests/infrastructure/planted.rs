//! Mistakes that only terraform itself can find, such as an argument that does not exist.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What `terraform/check/run` exits with if something it needs is missing.
const SKIPPED: i32 = 3;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.extension() {
            Some(end) if end == "tf" => drop(fs::copy(&path, target).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_misspelt_argument_is_found() {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../terraform");
    let folder = tempfile::tempdir().unwrap();
    copy(&module, folder.path());
    let file = folder.path().join("pubsub.tf");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("    push_endpoint = "));
    fs::write(file, text.replacen("    push_endpoint = ", "    push_endpont = ", 1)).unwrap();
    let output = Command::new(module.join("check/run")).arg(folder.path()).output().unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(SKIPPED) {
        return eprintln!("{printed}");
    }
    assert!(!output.status.success() && printed.contains("push_endpont"), "{printed}");
}

/// The mistakes of the deploy test that cannot be planted, after this change of the list.
fn outdated(change: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script =
        format!("import mistakes\n{change}\nprint('\\n'.join(mistakes.outdated('{}')))", root.display());
    let mut python = Command::new("python3");
    python.args(["-c", &script]).env("PYTHONPATH", root.join("tools/deploy-test"));
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn every_mistake_of_the_deploy_test_replaces_a_text_that_exists() {
    assert_eq!(outdated(""), "");
    let found = outdated("mistakes.ALL[0].right = 'a text of last year'");
    assert!(found.contains("does not say 'a text of last year'"), "{found}");
}
