//! Packages of Python tasks, in contained programs: installed by uv, and by pip where there is no uv. Nothing comes over the
//! network.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::project::{Project, printed, shared_folder};

const CODE: &str = "
import ebb_tiny, json, os, sys
found = {'version': ebb_tiny.VERSION, 'prefix': sys.prefix, 'python': '%d.%d' % sys.version_info[:2]}
json.dump(found, open(os.environ['EBB_OUTPUT'], 'w'))
";

/// Writes a wheel with one module.
const WHEEL: &str = "
import sys, zipfile
info = 'ebb_tiny-1.0.dist-info'
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('ebb_tiny.py', 'VERSION = 1.0')
    wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\\nName: ebb-tiny\\nVersion: 1.0\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', '')
";

/// A project whose tasks need a package that is in a folder of their worker.
struct Packed {
    project: Project,
    packages: TempDir,
    path: OsString,
}

impl Packed {
    /// A worker that finds uv in this folder, or finds none.
    fn new(uv: Option<&Path>) -> Self {
        let (project, packages) = (Project::new(), shared_folder());
        let wheel = packages.path().join("ebb_tiny-1.0-py3-none-any.whl");
        assert!(Command::new("python3").args(["-c", WHEEL]).arg(&wheel).status().unwrap().success());
        project.write("workflows/requirements.txt", &format!("--no-index\n{}\n", wheel.display()));
        let found = std::env::var_os("PATH").unwrap();
        let others = std::env::split_paths(&found).filter(|folder| !folder.join("uv").exists());
        // Last: in that folder is a Python, too.
        let path = std::env::join_paths(others.chain(uv.map(Path::to_owned))).unwrap();
        Self { project, packages, path }
    }

    fn wheel(&self) -> String {
        self.packages.path().join("ebb_tiny-1.0-py3-none-any.whl").display().to_string()
    }

    /// Runs a task with these settings, besides its code.
    fn run(&self, mut config: Value) -> Output {
        config["code"] = CODE.into();
        let workflow =
            json!({"name": "packed", "tasks": [{"name": "use", "type": "python", "config": config}]});
        self.project.write("workflows/graphs/packed.yaml", &workflow.to_string());
        let mut command = self.project.command(&["task", "run", "packed", "use"]);
        command.env("PATH", &self.path).env("EBB_TASK_READABLE", self.packages.path());
        command.env("PIP_NO_INDEX", "1").env("UV_OFFLINE", "1").env("UV_PYTHON_DOWNLOADS", "never");
        command.output().unwrap()
    }

    /// The output of a run that succeeds, and whether it built an environment with that program.
    fn output(&self, config: Value, builder: &str) -> (Value, bool) {
        let done = self.run(config);
        assert!(done.status.success(), "{}", printed(&done));
        let notice = format!("building the environment of this task with {builder}");
        let is_built = printed(&done).contains(&notice);
        assert_eq!(printed(&done).contains("building"), is_built, "{}", printed(&done));
        (serde_json::from_slice(&done.stdout).unwrap(), is_built)
    }

    /// Checks all that holds whichever program builds the environment.
    fn check(&self, builder: &str) {
        let required = json!({"requirements": [self.wheel()]});
        let (first, is_built) = self.output(required.clone(), builder);
        assert!(is_built && first["version"] == 1.0, "{first}");
        assert_eq!(self.output(required, builder), (first.clone(), false), "another process uses it again");
        let (listed, is_built) = self.output(json!({"requirements_file": "requirements.txt"}), builder);
        assert!(is_built && listed["prefix"] != first["prefix"], "{listed}");
        let python = &first["python"];
        let pinned = json!({"requirements": [self.wheel()], "python_version": python});
        assert_eq!(self.output(pinned, builder).0["python"], *python);
        let failed = self.run(json!({"requirements": [self.wheel()], "python_version": "3.99"}));
        assert!(!failed.status.success() && printed(&failed).contains("3.99"), "{}", printed(&failed));
        let missing = self.run(json!({"requirements": ["ebb-missing==1.0"]}));
        let said = printed(&missing);
        let reason = format!("cannot build its environment with {builder}: ");
        let names_it = said.lines().any(|line| line.contains(&reason) && line.contains("ebb-missing"));
        assert!(names_it, "{said}");
    }
}

/// The folder of uv: of this machine, or of a virtual environment that is created for it.
fn uv() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    if let Some(folder) = std::env::split_paths(&path).find(|folder| folder.join("uv").is_file()) {
        return Some(folder);
    }
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/python");
    let installed = Command::new(install).args(["uv", "uv"]).output().unwrap();
    if !installed.status.success() {
        testkit::skip(&format!("packages are not installed with uv: {}", printed(&installed)));
        return None;
    }
    let python = PathBuf::from(String::from_utf8(installed.stdout).unwrap().trim());
    Some(python.parent().unwrap().to_owned())
}

#[test]
fn uv_builds_an_environment_once() {
    let Some(uv) = uv() else { return };
    Packed::new(Some(&uv)).check("uv");
}

#[test]
fn pip_builds_it_where_there_is_no_uv() {
    Packed::new(None).check("pip");
}
