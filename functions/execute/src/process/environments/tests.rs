//! Real environments, with a package that the test makes: nothing comes over the network.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use model::ErrorClass;
use serde_json::{Value, json};
use testkit::run_others;

use super::{Builder, builds, create_base, key, lock};
use crate::task_runners::tests::Bench;

/// Makes a wheel of a package with one module, and returns its path.
fn wheel(folder: &std::path::Path, version: &str) -> String {
    let path = folder.join(format!("ebb_tiny-{version}-py3-none-any.whl"));
    let code = "
import sys, zipfile
path, version = sys.argv[1:]
info = f'ebb_tiny-{version}.dist-info'
with zipfile.ZipFile(path, 'w') as wheel:
    wheel.writestr('ebb_tiny.py', f'VERSION = {version!r}\\n')
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: ebb-tiny\\nVersion: {version}\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', '')
";
    let done = Command::new("python3").args(["-c", code]).arg(&path).arg(version).status().unwrap();
    assert!(done.success());
    path.display().to_string()
}

/// Makes the source of the same package, whose version is what its code reads from `EBB_INPUT` while it is built.
fn source(folder: &std::path::Path) -> String {
    let project = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n";
    let backend = r"
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = 'ebb_tiny-1.0-py3-none-any.whl', 'ebb_tiny-1.0.dist-info'
    seen = open(os.environ['EBB_INPUT']).read()
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('ebb_tiny.py', f'VERSION = {seen!r}\n')
        wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\nName: ebb-tiny\nVersion: 1.0\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr(f'{info}/RECORD', '')
    return name
";
    fs::write(folder.join("pyproject.toml"), project).unwrap();
    fs::write(folder.join("backend.py"), backend).unwrap();
    folder.display().to_string()
}

/// The folder of the environment of a bench that requires `x`.
fn folder_of(bench: &Bench) -> PathBuf {
    let builder = Builder::choose(None).unwrap();
    bench.context.environments.join(key(&bench.job, &builder, "x\n"))
}

const IMPORT: &str = "import ebb_tiny, json, os, sys\n\
                      json.dump([ebb_tiny.VERSION, sys.prefix], open(os.environ['EBB_OUTPUT'], 'w'))";

fn notices(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.contains("building the environment")).count()
}

#[tokio::test]
async fn packages_are_installed_once_and_only_for_who_needs_them() {
    let packages = tempfile::tempdir().unwrap();
    let wheel = wheel(packages.path(), "1.0");
    let bench = Bench::new("python", json!({"code": IMPORT, "requirements": [wheel]}));
    let (one, other) = (bench.begin(), bench.begin());
    let (one, other) = (one.await.unwrap().unwrap(), other.await.unwrap().unwrap());
    assert_eq!((&one, &one[0]), (&other, &json!("1.0")));
    assert_eq!(bench.run().await.unwrap(), one);
    assert_eq!(notices(&bench.lines().await), 1, "three attempts, and one build");
    let without = Bench::new("python", json!({"code": "import ebb_tiny"}));
    assert!(without.run().await.unwrap_err().message.contains("No module named 'ebb_tiny'"));
}

#[tokio::test]
async fn a_requirements_file_is_part_of_the_version_and_commands_find_its_programs() {
    let packages = tempfile::tempdir().unwrap();
    let wheel = wheel(packages.path(), "2.0");
    let command = "python -c 'import ebb_tiny; print(ebb_tiny.VERSION)'; echo $VIRTUAL_ENV";
    let files = json!({"requirements.txt": format!("--no-index\n{wheel}  # local\n")});
    let bench = Bench::new(
        "python",
        json!({"command": command, "requirements_file": "requirements.txt", "files": files}),
    );
    assert_eq!(bench.run().await, Ok(Value::Null));
    let lines = bench.lines().await;
    assert!(lines.contains(&"stdout: 2.0".to_owned()), "{lines:?}");
    let base = bench.context.environments.display().to_string();
    assert!(lines.iter().any(|line| line.starts_with(&format!("stdout: {base}"))), "{lines:?}");
}

#[tokio::test]
async fn an_environment_that_is_not_complete_is_never_used() {
    let packages = tempfile::tempdir().unwrap();
    let missing = packages.path().join("ebb_tiny-1.0-py3-none-any.whl").display().to_string();
    let bench = Bench::new("python", json!({"code": IMPORT, "requirements": [missing]}));
    let failure = bench.run().await.unwrap_err();
    assert!(failure.message.starts_with("cannot build its environment with "), "{}", failure.message);
    assert!(failure.message.contains("ebb_tiny-1.0") && failure.exit_code.is_none(), "{}", failure.message);
    let left = std::fs::read_dir(&bench.context.environments).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|extension| extension != "complete")));
    assert_eq!(left.iter().filter(|path| path.is_dir()).count(), 0, "nothing is left of it: {left:?}");
    // An interrupted build leaves an interpreter, but not the package.
    let locked = left.iter().find(|path| path.extension().is_some_and(|extension| extension == "lock"));
    let programs = locked.unwrap().with_extension("").join("bin");
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join("python"), "").unwrap();
    wheel(packages.path(), "1.0");
    assert_eq!(bench.run().await.unwrap()[0], "1.0", "it is built again");
}

#[tokio::test]
async fn a_version_that_the_worker_lacks_and_options_of_pip_are_refused() {
    let config = json!({"code": "pass", "python_version": "2.999"});
    let failure = Bench::new("python", config).run().await.unwrap_err();
    assert!(failure.message.contains("2.999"), "{}", failure.message);
    let config = json!({"code": "pass", "requirements": ["--index-url=https://evil.example"]});
    let failure = Bench::new("python", config).run().await.unwrap_err();
    assert!(failure.message.contains("requirements_file"), "{}", failure.message);
}

#[tokio::test]
async fn a_folder_of_environments_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new("python", json!({"code": "pass", "requirements": ["x"]}));
    // Not even one that seems to be complete is used.
    let folder = folder_of(&bench);
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::write(folder.join("bin/python"), "").unwrap();
    fs::write(folder.with_extension("complete"), "").unwrap();
    std::fs::set_permissions(&bench.context.environments, std::fs::Permissions::from_mode(0o777)).unwrap();
    let failure = bench.run().await.unwrap_err();
    assert!(failure.message.contains("others may write to it"), "{}", failure.message);
}

#[tokio::test]
async fn the_code_of_a_package_that_is_built_does_not_see_the_runs_data() {
    let packages = tempfile::tempdir().unwrap();
    let config = json!({"code": IMPORT, "requirements": [source(packages.path())]});
    assert_eq!(Bench::new("python", config).run().await.unwrap()[0], "{}");
}

#[tokio::test]
async fn an_attempt_that_waits_for_another_ones_build_can_be_stopped() {
    let config = json!({"code": "pass", "requirements": ["x"]});
    let check = async |bench: &Bench| {
        let attempt = bench.begin();
        run_others().await;
        bench.context.cancel.cancel();
        assert_eq!(attempt.await.unwrap().unwrap_err().class, ErrorClass::Killed);
        assert_eq!(notices(&bench.lines().await), 0);
    };
    let bench = Bench::new("python", config.clone());
    let build = builds(&folder_of(&bench));
    let turn = build.lock().await;
    check(&bench).await;
    drop(turn);
    // The same while another process builds.
    let bench = Bench::new("python", config);
    create_base(&bench.context.environments).unwrap();
    let locked = lock(&folder_of(&bench)).await.unwrap();
    check(&bench).await;
    drop(locked);
}

#[test]
fn tenants_share_no_environment_even_if_only_their_names_differ() {
    let folder = |tenant: &str| {
        let mut bench = Bench::new("python", json!({"code": "pass", "requirements": ["x"]}));
        bench.context.environments = PathBuf::from("/environments");
        bench.job.document = json!({"tenant": tenant});
        folder_of(&bench)
    };
    assert_eq!(folder("a"), folder("a"));
    assert_ne!(folder("a"), folder("b"));
}

#[tokio::test]
async fn a_function_gets_its_parameters_by_name_and_returns_the_output() {
    let module = "
import asyncio

def build(day, inputs, region, *, limit=10, missing=None):
    return {'day': day, 'same': inputs['day'] == day, 'region': region, 'limit': limit, 'missing': missing}

async def wait(document, **others):
    await asyncio.sleep(0)
    return [document['task']['name'], others]

class Job:
    @staticmethod
    def run():
        pass

def broken(nothing):
    pass

def odd():
    return object()
";
    let config = |function: &str, kwargs: Value| json!({"function": function, "kwargs": kwargs, "files": {"pkg/report.py": module, "pkg/__init__.py": ""}});
    let call =
        async |function: &str, kwargs: Value| Bench::new("python", config(function, kwargs)).run().await;
    assert_eq!(
        call("pkg.report:build", json!({"region": "eu", "limit": 3})).await.unwrap(),
        json!({"day": "2026-01-01", "same": true, "region": "eu", "limit": 3, "missing": null})
    );
    assert_eq!(call("pkg.report:wait", json!({"a": [1]})).await.unwrap(), json!(["load", {"a": [1]}]));
    assert_eq!(call("pkg.report:Job.run", json!({})).await, Ok(Value::Null));
    for (function, kwargs, words) in [
        ("pkg.report:broken", json!({}), "no value for the parameter nothing"),
        ("pkg.report:Job.run", json!({"x": 1}), "has no parameter x"),
        ("pkg.report:odd", json!({}), "not JSON serializable"),
        ("pkg.report:none", json!({}), "has no attribute 'none'"),
        ("nowhere:x", json!({}), "No module named 'nowhere'"),
    ] {
        let failure = call(function, kwargs).await.unwrap_err();
        assert!(failure.message.contains(words), "{function}: {}", failure.message);
    }
}

#[tokio::test]
async fn a_script_of_the_version_comes_before_one_of_the_worker() {
    let files = json!({"etl/load.sh": "echo version $1"});
    let mut bench = Bench::new("bash", json!({"script": "etl/load.sh", "args": ["x"], "files": files}));
    std::fs::create_dir(bench.folder.path().join("etl")).unwrap();
    std::fs::write(bench.folder.path().join("etl/load.sh"), "echo worker $1").unwrap();
    bench.run().await.unwrap();
    assert_eq!(bench.lines().await, ["stdout: version x"]);
    bench = Bench::new("bash", json!({"script": "load.sh", "files": {"../evil": "x"}}));
    assert!(bench.run().await.unwrap_err().message.contains("not a script's path"));
}
