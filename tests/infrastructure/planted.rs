//! What only terraform itself can find: arguments that there are not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The check of `.ci/run`, where it is there: `EBB_TFCHECK` names another place for it.
fn check() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/tools/terraform-check/tfcheck.sh");
    let check = std::env::var_os("EBB_TFCHECK").map_or(beside, PathBuf::from);
    let terraform = Command::new("terraform").arg("version").output();
    (check.is_file() && terraform.is_ok()).then_some(check)
}

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
    let Some(check) = check() else {
        return eprintln!("skipped: terraform, or the check that .ci/run uses, is not there");
    };
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../terraform");
    let folder = tempfile::tempdir().unwrap();
    copy(&module, folder.path());
    let file = folder.path().join("pubsub.tf");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("    push_endpoint = "));
    fs::write(file, text.replacen("    push_endpoint = ", "    push_endpont = ", 1)).unwrap();
    let output = Command::new(check).arg(folder.path()).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success() && said.contains("push_endpont"), "{said}");
}
