use std::io::{Error, ErrorKind};
use std::path::Path;

use model::ErrorClass;

use super::unusable;

#[test]
fn a_full_disk_is_a_transient_failure() {
    let failure = unusable(Path::new("/scratch"), &Error::from(ErrorKind::StorageFull));
    assert_eq!(failure.class, ErrorClass::Transient);
    assert!(
        failure.message.starts_with("no space for the scratch directory at /scratch"),
        "{}",
        failure.message
    );
}
