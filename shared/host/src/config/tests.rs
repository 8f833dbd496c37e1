//! Tests of the configuration.

use super::*;

pub(super) fn read(variables: &[(&str, &str)]) -> Result<Config, Problems> {
    Config::from_env(&variables.iter().copied().collect())
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = read(&[("PORT", "http")]).unwrap_err().to_string();
    for name in ["PORT", "DATABASE_URL", "EBB_PROJECT", "EBB_BROKER_URL", "EBB_PUSH_AUTH"] {
        assert!(problems.contains(name), "{name} is missing in:\n{problems}");
    }
}

#[test]
fn checking_tokens_needs_an_audience_and_an_account() {
    let problems = read(&[("EBB_PUSH_AUTH", "oidc")]).unwrap_err().to_string();
    assert!(problems.contains("EBB_PUSH_AUDIENCE") && problems.contains("EBB_PUSH_ACCOUNT"), "{problems}");
}

#[test]
fn the_grace_period_is_eight_seconds_by_default() {
    let mut variables =
        vec![("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];
    assert_eq!(read(&variables).unwrap().grace_seconds, 8);
    variables.push(("EBB_GRACE_SECONDS", "600"));
    assert_eq!(read(&variables).unwrap().grace_seconds, 600);
}

#[test]
fn retention_is_at_least_a_day() {
    let problems =
        read(&[("EBB_RETENTION_LOGS_DAYS", "0"), ("EBB_RETENTION_FAILED_DAYS", "ever")]).unwrap_err();
    let problems = problems.to_string();
    assert!(problems.contains("EBB_RETENTION_LOGS_DAYS is 0"), "{problems}");
    assert!(problems.contains("EBB_RETENTION_FAILED_DAYS is `ever`"), "{problems}");
}

#[test]
fn google_is_the_trusted_issuer_by_default() {
    let variables = [
        ("DATABASE_URL", "postgres://x/y"),
        ("EBB_PROJECT", "p"),
        ("EBB_PUSH_AUTH", "oidc"),
        ("EBB_PUSH_AUDIENCE", "https://a"),
        ("EBB_PUSH_ACCOUNT", "invoker@p"),
    ];
    let PushConfig::Oidc { tokens, .. } = read(&variables).unwrap().push else {
        panic!("EBB_PUSH_AUTH is oidc")
    };
    assert_eq!(tokens.issuers, GOOGLE_ISSUERS);
    assert_eq!(tokens.keys_url, GOOGLE_KEYS_URL);
}

#[test]
fn the_archive_is_either_a_folder_or_a_bucket() {
    let mut variables = vec![
        ("DATABASE_URL", "postgres://x/y"),
        ("EBB_PROJECT", "p"),
        ("EBB_PUSH_AUTH", "none"),
        ("EBB_ARCHIVE_BUCKET", "old-runs"),
    ];
    let archive = read(&variables).unwrap().retention.archive;
    assert_eq!(archive, Some(ArchiveConfig::Bucket { name: "old-runs".into(), endpoint: None }));
    variables.push(("EBB_ARCHIVE_DIR", "/archive"));
    assert!(read(&variables).unwrap_err().to_string().contains("EBB_ARCHIVE_BUCKET"));
    variables.remove(3);
    let archive = read(&variables).unwrap().retention.archive;
    assert_eq!(archive, Some(ArchiveConfig::Folder("/archive".into())));
}
