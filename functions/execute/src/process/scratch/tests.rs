use std::io::{Error, ErrorKind};
use std::path::Path;

use model::ErrorClass;

use super::unusable;

#[test]
fn a_full_disk_may_pass_and_is_told_as_such() {
    let failure = unusable(Path::new("/scratch"), &Error::from(ErrorKind::StorageFull));
    assert_eq!(failure.class, ErrorClass::Transient);
    assert!(
        failure.message.starts_with("no space for the scratch directory at /scratch"),
        "{}",
        failure.message
    );
}
