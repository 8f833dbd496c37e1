//! What the code publishes to is what terraform creates.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::path::Path;

use model::Topic;

#[test]
fn terraform_creates_the_topics_that_the_code_names() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("terraform/pubsub.tf");
    let text = fs::read_to_string(file).unwrap();
    for topic in [Topic::Triggers, Topic::Evaluations, Topic::Management, Topic::Lifecycle] {
        assert!(text.contains(&format!("\"{}\"", topic.id())), "{} is missing", topic.id());
    }
    assert!(
        text.contains(&format!("\"{}\"", Topic::Work("${queue}".into()).id())),
        "the work topics are missing"
    );
    let suffix = Topic::Triggers.dead_letter_id().replace(&Topic::Triggers.id(), "");
    assert!(text.contains(&format!("\"${{each.value}}{suffix}\"")), "the dead-letter topics are missing");
}
