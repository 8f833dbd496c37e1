//! `ebb triggers`: what starts runs by itself.

use crate::ebb::{Place, said};

const UPLOADS: &str = "
name: uploads
triggers:
  - {name: arrived, event: com.example.arrived}
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}}
tasks: [{name: a, type: noop}]
";

#[test]
fn triggers_are_listed_shown_paused_and_resumed() {
    let place = Place::new().with("uploads", UPLOADS);
    let _dev = place.dev();
    let ask = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let list = ask(&["triggers"]);
    assert!(list.contains("arrived") && list.contains("webhook"), "{list}");
    let shown = ask(&["triggers", "show", "uploads", "partner"]);
    assert!(shown.contains("endpoint: POST /api/v1/hooks/uploads/partner"), "{shown}");
    let paused = ask(&["triggers", "pause", "uploads", "arrived", "--reason", "moving"]);
    assert!(paused.contains("paused: ") && paused.contains("moving"), "{paused}");
    let resumed = ask(&["triggers", "resume", "uploads", "arrived"]);
    assert!(resumed.contains("active"), "{resumed}");
    let missing = place.run(&["triggers", "show", "uploads", "none"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(said(&missing).contains("has no trigger `none`"), "{}", said(&missing));
}
