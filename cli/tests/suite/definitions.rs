//! Folders of definitions in which some entries cannot be read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;
use testkit::eventually;

use crate::project::{Dev, Project, printed};

fn workflow(name: &str) -> String {
    format!("name: {name}\ntasks: [{{name: only, type: noop}}]\n")
}

/// A folder with the workflow `greet`, a nested one, the lock of an editor, and a link to nothing.
fn project() -> Project {
    let project = Project::new().with("greet", &workflow("greet")).with("team/other", &workflow("other"));
    let graphs = project.path().join("workflows/graphs");
    symlink("me@host.1:1", graphs.join(".#greet.yaml")).unwrap();
    symlink("nowhere", graphs.join("broken.yaml")).unwrap();
    project
}

/// Replaces a file at once: nobody sees half of it.
fn replace(path: &Path, content: &[u8]) {
    let draft = path.with_extension("draft");
    fs::write(&draft, content).unwrap();
    fs::rename(draft, path).unwrap();
}

/// What the doctor says about definitions.
async fn problems(dev: &Dev) -> Vec<String> {
    let report = dev.get("/doctor").await;
    let checks = report["checks"].as_array().unwrap().iter();
    let wrong = checks.filter(|check| check["name"] == "definitions" && check["verdict"] == "wrong");
    wrong.map(|check| check["message"].as_str().unwrap().to_owned()).collect()
}

/// The files that the audit log says could not be loaded, the first one first.
async fn audited(dev: &Dev) -> Vec<String> {
    let entries = dev.get("/audit?action=load_definitions").await;
    let entries = entries["items"].as_array().unwrap().iter().rev();
    let file = |entry: &Value| {
        let target = entry["target"].as_str().unwrap();
        assert!(entry["after"]["problems"][0].as_str().unwrap().starts_with(target), "{entry}");
        target.to_owned()
    };
    entries.map(file).collect()
}

async fn is_active(dev: &Dev, name: &str) -> bool {
    dev.get(&format!("/workflows/{name}")).await["archived"] == false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_blocks_nothing_and_appears_in_console_api_and_audit() {
    let project = project();
    let graphs = project.path().join("workflows/graphs");
    let dev = project.dev();
    assert!(is_active(&dev, "greet").await && is_active(&dev, "other").await);
    let [broken] = &problems(&dev).await[..] else { panic!("{:?}", problems(&dev).await) };
    assert_eq!(broken, "workflows/graphs/broken.yaml:1:1: cannot be read: it is a link to nothing");
    assert_eq!(audited(&dev).await, ["workflows/graphs/broken.yaml"]);
    for page in ["/", "/operations/health"] {
        let text = reqwest::get(format!("{}{page}", dev.url)).await.unwrap().text().await.unwrap();
        assert!(text.contains("workflows/graphs/broken.yaml"), "{page}: {text}");
    }
    let doctor = project.run(&["doctor"]);
    assert!(!doctor.status.success() && printed(&doctor).contains("broken.yaml"), "{}", printed(&doctor));

    // Neither a file that cannot be read nor an invalid one is gone.
    replace(&graphs.join("team/other.yaml"), b"name: \xff");
    replace(&graphs.join("greet.yaml"), b"name: greet\ntasks: [{name: only, type: nope}]\n");
    eventually("both problems are reported", async || {
        let problems = problems(&dev).await;
        let is_reported = |part: &&str| problems.iter().any(|problem| problem.contains(*part));
        ["other.yaml:1:1: cannot be read", "greet.yaml:2:"].iter().all(is_reported).then_some(())
    })
    .await;
    replace(&graphs.join("new.yaml"), workflow("new").as_bytes());
    eventually("another file is loaded", async || is_active(&dev, "new").await.then_some(())).await;
    assert!(is_active(&dev, "greet").await && is_active(&dev, "other").await);
    let mut audited = audited(&dev).await;
    audited.sort();
    let expected = ["broken.yaml", "greet.yaml", "team/other.yaml"];
    assert_eq!(audited, expected.map(|name| format!("workflows/graphs/{name}")), "each problem once");

    replace(&graphs.join("greet.yaml"), workflow("greet").as_bytes());
    fs::remove_file(graphs.join("broken.yaml")).unwrap();
    fs::remove_file(graphs.join("team/other.yaml")).unwrap();
    eventually("all is well", async || problems(&dev).await.is_empty().then_some(())).await;
    eventually("what is gone is archived", async || (!is_active(&dev, "other").await).then_some(())).await;
    assert!(is_active(&dev, "greet").await);

    // Without any folder of workflows there is nothing to report, and nothing to archive.
    symlink("nowhere", graphs.join("broken.yaml")).unwrap();
    eventually("it is broken again", async || (problems(&dev).await.len() == 1).then_some(())).await;
    fs::rename(&graphs, project.path().join("moved")).unwrap();
    eventually("it is away", async || problems(&dev).await.is_empty().then_some(())).await;
    assert!(is_active(&dev, "greet").await);
}

#[test]
fn commands_report_what_cannot_be_read_and_check_the_rest() {
    let project = project().with("invalid", "name: invalid\ntasks: [{name: only, type: nope}]\n");
    project.write(
        "workflows/tests/greet.yaml",
        "workflow: greet\ntests: [{name: it ends, expect: {tasks: {only: succeeded}}}]\n",
    );
    let unreadable = "workflows/graphs/broken.yaml:1:1: cannot be read: it is a link to nothing";
    for (command, also) in [
        (&["validate", "workflows"][..], "2 problems"),
        (&["plan"], "`ebb apply` would register nothing"),
        (&["apply"], "nothing was registered"),
        (&["apply", "--prune"], "nothing was registered"),
        (&["test"], "1 of 1 test passed"),
    ] {
        for expected in [unreadable, "invalid.yaml:2:", also] {
            project.assert_fails(command, 1, expected);
        }
    }
    let found = project.ask_json(&["graph", "other"]);
    assert_eq!(found["workflow"], "other");
    project.assert_fails(&["graph", "broken"], 1, unreadable);
    symlink("nowhere", project.path().join("workflows/tests/lost.yaml")).unwrap();
    project.assert_fails(&["test"], 2, "workflows/tests/lost.yaml:1:1: cannot be read");
}
