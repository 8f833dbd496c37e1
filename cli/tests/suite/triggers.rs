//! `ebb triggers`.

use crate::project::Project;

const UPLOADS: &str = "
name: uploads
triggers:
  - {name: arrived, event: com.example.arrived}
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}}
tasks: [{name: a, type: noop}]
";

#[test]
fn triggers_are_listed_shown_paused_and_resumed() {
    let project = Project::new().with("uploads", UPLOADS);
    let _dev = project.dev();
    let list = project.ask(&["triggers"]);
    assert!(list.contains("arrived") && list.contains("webhook"), "{list}");
    let shown = project.ask(&["triggers", "show", "uploads", "partner"]);
    assert!(shown.contains("endpoint: POST /api/v1/hooks/uploads/partner"), "{shown}");
    let paused = project.ask(&["triggers", "pause", "uploads", "arrived", "--reason", "moving"]);
    assert!(paused.contains("paused: ") && paused.contains("moving"), "{paused}");
    let resumed = project.ask(&["triggers", "resume", "uploads", "arrived"]);
    assert!(resumed.contains("active"), "{resumed}");
    project.assert_fails(&["triggers", "show", "uploads", "none"], 3, "has no trigger `none`");
}
