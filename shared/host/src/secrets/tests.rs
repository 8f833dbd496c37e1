//! Where secrets come from, and what redaction recognizes.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde_json::json;

use super::*;

fn tenant(name: &str) -> TenantName {
    TenantName::new(name).unwrap()
}

/// Writes the file of a tenant's secret.
fn write(folder: &Path, tenant: &str, name: &str, value: &str) {
    std::fs::create_dir_all(folder.join(tenant)).unwrap();
    std::fs::write(folder.join(tenant).join(name), value).unwrap();
}

#[tokio::test]
async fn a_secret_is_read_from_its_file_and_the_error_of_a_missing_one_explains_how_to_set_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "acme-north", "api-key", "s3cret\n");
    let (secrets, acme) = (Secrets::default().with_folder(folder.path().to_owned()), tenant("acme-north"));
    let found = secrets.of(&acme).resolve(["api-key".to_owned()].into()).await.unwrap();
    assert_eq!(found["api-key"], "s3cret");
    let failure = secrets.of(&acme).resolve(["other-key".to_owned()].into()).await.unwrap_err();
    for part in ["EBB_SECRET_ACME_NORTH__OTHER_KEY", "`acme-north/other-key`"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

#[test]
fn a_secret_is_redacted_in_every_form() {
    let secrets = Map::from_iter([("hook".to_owned(), Value::from("T0/B\"0=x|^"))]);
    let redactor = Redactor::of(&secrets);
    for shown in [
        "T0/B\"0=x|^",
        "T0%2FB%220%3Dx%7C%5E",
        "T0%2fB%220%3dx%7c%5e",
        "%54%30%2f%42%22%30%3D%78%7C%5e",
        "T0/B\\\"0=x|^",
        "T0\\/B\\u00220=x\\u007C^",
        "T0/B%220=x%7C%5E",
        "T0/B%220=x|^",
        "54302f4222303d787c5e",
        "54302F4222303D787C5E",
        "54 30 2f 42\n22 30 3d 78\n7c 5e",
    ] {
        let failure = redactor.failure(Failure::permanent(format!("POST https://h/{shown} failed")));
        assert_eq!(failure.message, "POST https://h/*** failed", "{shown}");
    }
}

#[test]
fn a_secret_is_redacted_within_base64_at_every_alignment() {
    let secrets = Map::from_iter([("pass".to_owned(), Value::from("correct-horse-battery"))]);
    for before in ["", "a", "ab", "ada:"] {
        let whole = BASE64_STANDARD_NO_PAD.encode(format!("{before}correct-horse-battery\n"));
        let shown = Redactor::of(&secrets).text(&whole);
        assert!(shown.contains("***") && shown.len() <= 15, "{before}: {shown}");
    }
}

#[test]
fn a_secret_inside_another_does_not_break_its_match() {
    let secrets = [("a", "hunter2hunter2"), ("b", "zz-hunter2hunter2-aa")];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), Value::from(value)));
    assert_eq!(Redactor::of(&Map::from_iter(secrets)).text("it is zz-hunter2hunter2-aa"), "it is ***");
}

#[test]
fn field_names_texts_and_numbers_are_redacted() {
    let secrets = Map::from_iter([("pin".to_owned(), Value::from("12345678"))]);
    let value = json!({"12345678": ["x12345678", 12_345_678, 5]});
    assert_eq!(Redactor::of(&secrets).value(value), json!({"***": ["x***", "***", 5]}));
}

#[tokio::test]
async fn all_secrets_in_the_folder_of_a_tenant_are_redacted_unless_they_are_short() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("one", "long-enough\n"), ("two", "short"), ("three", "another-one")] {
        write(folder.path(), "acme", name, text);
    }
    let all = Secrets::default().with_folder(folder.path().to_owned()).of(&tenant("acme")).all().await;
    let has = |text: &str| all.iter().any(|secret| secret == text);
    assert!(has("long-enough") && has("another-one") && !has("short"), "{all:?}");
}

#[tokio::test]
async fn secrets_in_the_environment_are_resolved_and_redacted() {
    let environment = Environment::from_iter([
        ("DATABASE_URL", "postgres://ebb:p%40ss-word@host/db"),
        ("EBB_SECRET_ACME__API_KEY", "key-of-the-api"),
        ("EBB_OPERATIONS_TOKEN", "token-of-operators"),
        ("PATH", "postgres://a:not-a-secret@c"),
    ]);
    let (secrets, acme) = (Secrets::from_env(&environment).unwrap(), tenant("acme"));
    let found = secrets.of(&acme).resolve(["api-key".to_owned()].into()).await.unwrap();
    assert_eq!(found["api-key"], "key-of-the-api");
    let all = secrets.of(&acme).all().await;
    for secret in ["p%40ss-word", "p@ss-word", "key-of-the-api", "token-of-operators"] {
        assert!(all.iter().any(|known| known == secret), "{secret}: {all:?}");
    }
    assert!(all.iter().all(|known| known != "not-a-secret"), "{all:?}");
    assert!(!format!("{environment:?} {secrets:?}").contains("key-of-the-api"));
}

#[test]
fn base64_is_redacted_however_it_is_wrapped() {
    let secret = "correct-horse-battery-staple";
    let redactor = Redactor::default().and([secret.to_owned()]);
    let whole = BASE64_STANDARD.encode(format!("user:a-long-name-of-a-service-account:{secret}@host"));
    let secret_part = BASE64_STANDARD_NO_PAD.encode(&secret[1..22]);
    assert!(whole.contains(&secret_part), "{whole}");
    for width in 1..whole.len() {
        let lines: Vec<&str> =
            whole.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
        for wrap in ["\n", "\r\n", "\\n", "\n  "] {
            let shown = redactor.text(&lines.join(wrap));
            let parts = secret_part.as_bytes().windows(4).map(|part| str::from_utf8(part).unwrap());
            let left: Vec<&str> = parts.filter(|part| shown.contains(part)).collect();
            assert!(left.is_empty(), "{width}: {shown} has {left:?}");
        }
    }
}

#[test]
fn a_line_that_ends_in_the_middle_of_an_encoded_secret_shows_at_most_two_bytes() {
    let secret = "s3cretpw";
    let redactor = Redactor::default().and([secret.to_owned()]);
    // Two lines of a log, which are redacted one by one.
    let (base64, hex) = ("Ym9iOnMzY3JldHB3", "626f623a7333637265747077");
    for at in 6..base64.len() {
        let (first, second) = base64.split_at(at);
        let shown = [redactor.text(first), redactor.text(second)];
        let left = shown.iter().map(|line| line.replace("***", "")).collect::<String>();
        // Six characters encode what is not the secret, or its first byte; three more are less than an edge.
        assert!(left.len() <= 6 + 3 + 2, "{at}: {shown:?}");
    }
    for at in 8..hex.len() {
        let (first, second) = hex.split_at(at);
        let shown = [redactor.text(first), redactor.text(second)];
        let left = shown.iter().map(|line| line.replace("***", "")).collect::<String>();
        assert!(left.len() <= 8 + 5, "{at}: {shown:?}");
    }
}

#[test]
fn unrelated_text_stays_as_it_is() {
    let redactor = Redactor::default().and(["correct-horse-battery".to_owned(), "pass word".to_owned()]);
    for text in ["correct horse", "100% \\o/ %zz \\u12", "Y29", "päss wörd 🐎", "", "deadbeefdeadbeef"] {
        assert_eq!(redactor.text(text), text);
    }
    assert_eq!(redactor.text("q=pass+word&x=pass%20word"), "q=***&x=***");
}

/// Resolves the secret `name` from a folder, or returns why it cannot be read.
async fn resolve(folder: &Path, name: &str) -> Result<String, String> {
    let secrets = Secrets::default().with_folder(folder.to_owned());
    let found = secrets
        .of(&tenant("acme"))
        .resolve([name.to_owned()].into())
        .await
        .map_err(|failure| failure.message)?;
    Ok(found[name].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_secret_is_never_looked_up_by_a_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("outside"), "outside").unwrap();
    write(&folder.path().join("secrets"), "acme", ".hidden", "hidden");
    write(&folder.path().join("secrets"), "other", "key", "of another tenant");
    for name in [
        "../other/key",
        "../../outside",
        "../outside",
        "/etc/hostname",
        "/dev/zero",
        "a/../../outside",
        ".hidden",
        "..",
        "",
        "a\0b",
    ] {
        let why = resolve(&folder.path().join("secrets"), name).await.unwrap_err();
        assert!(why.contains("is not a valid name"), "{name}: {why}");
    }
}

#[tokio::test]
async fn only_a_regular_file_of_limited_size_is_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("acme").join(name);
    std::fs::create_dir(at("")).unwrap();
    std::fs::write(at("plain"), "s3cret-text\n").unwrap();
    std::fs::write(at("largest"), "x".repeat(64 * 1024)).unwrap();
    std::fs::write(at("too-large"), "x".repeat(64 * 1024 + 1)).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    for (link, target) in [("endless", "/dev/zero"), ("gone", "nothing")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(pipe.success());
    assert_eq!(resolve(folder.path(), "plain").await, Ok("s3cret-text".to_owned()));
    assert_eq!(resolve(folder.path(), "largest").await.unwrap().len(), 64 * 1024);
    for (name, reason) in [
        ("endless", "link out of the folder"),
        ("gone", "has no secret"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("too-large", "more than 64 KiB"),
    ] {
        let why = resolve(folder.path(), name).await.unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
    let all = Secrets::default().with_folder(folder.path().to_owned()).of(&tenant("acme")).all().await;
    assert_eq!(all.len(), 2, "the others are not read to be redacted, either");
}

#[tokio::test]
async fn a_tenant_has_only_its_own_secrets() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "acme", "file", "file-of-acme");
    // A file outside the tenants' folders belongs to nobody.
    std::fs::write(folder.path().join("flat"), "secret-of-nobody").unwrap();
    let environment = Environment::from_iter([
        ("EBB_SECRET_ACME__KEY", "key-of-acme"),
        ("EBB_SECRET_ACME__NORTH__KEY", "north-key-of-acme"),
        ("EBB_SECRET_ACME_NORTH__KEY", "key-of-acme-north"),
        ("EBB_SECRET_OTHER__KEY", "key-of-other"),
    ]);
    let secrets = Secrets::from_env(&environment).unwrap().with_folder(folder.path().to_owned());
    let names = ["file", "key", "north__key", "north-key", "acme__key", "_key", "flat", "acme"];
    for (owner, known) in [
        ("acme", &["file-of-acme", "key-of-acme", "north-key-of-acme"][..]),
        ("acme-north", &["key-of-acme-north"]),
        ("other", &["key-of-other"]),
        ("default", &[]),
    ] {
        let owner = tenant(owner);
        let mut found = Vec::new();
        for name in names {
            let resolved = secrets.of(&owner).resolve([name.to_owned()].into()).await;
            found.extend(resolved.ok().and_then(|mut resolved| resolved.remove(name)));
        }
        assert_eq!(found, known, "{owner}");
        let mut all = secrets.of(&owner).all().await;
        all.sort();
        let mut known = known.to_vec();
        known.sort_unstable();
        assert_eq!(all, known, "only its own secrets are redacted for {owner}: others would be an oracle");
    }
}

#[test]
fn a_variable_that_belongs_to_no_tenant_or_is_too_large_is_reported() {
    let large = "x".repeat(MAX_BYTES + 1);
    let environment = Environment::from_iter([
        ("EBB_SECRET_KEY", "a"),
        ("EBB_SECRET_acme__key", "b"),
        ("EBB_SECRET___KEY", "c"),
        ("EBB_SECRET_ACME__", "d"),
        ("EBB_SECRET_ACME__9", "e"),
        ("EBB_SECRET_ACME__LARGE", &large),
        ("EBB_SECRET_ACME__KEY", "f"),
    ]);
    let problems = Secrets::from_env(&environment).unwrap_err();
    assert_eq!(problems.len(), 6, "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("EBB_SECRET_ACME__LARGE has more than 64 KiB")));
    assert!(problems.iter().any(|problem| problem.contains("EBB_SECRET_DEFAULT__API_KEY")), "{problems:?}");
}

#[tokio::test]
async fn links_are_followed_only_inside_the_folder() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("secrets/acme");
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
    // As Kubernetes mounts secrets: one link is exchanged to change all files at once.
    std::fs::create_dir_all(folder.join("..2026_01")).unwrap();
    std::fs::create_dir_all(folder.join("..2026_02")).unwrap();
    std::fs::write(folder.join("..2026_01/token"), "the-first-one\n").unwrap();
    std::fs::write(folder.join("..2026_02/token"), "the-second-one\n").unwrap();
    std::fs::write(above.path().join("secrets/outside"), "outside-the-folder").unwrap();
    link("..2026_01", "..data");
    link("..data/token", "token");
    assert_eq!(resolve(folder.parent().unwrap(), "token").await, Ok("the-first-one".to_owned()));
    link("..2026_02", "next");
    std::fs::rename(folder.join("next"), folder.join("..data")).unwrap();
    assert_eq!(resolve(folder.parent().unwrap(), "token").await, Ok("the-second-one".to_owned()));
    link("./..data/../..2026_01/./token", "winding");
    assert_eq!(resolve(folder.parent().unwrap(), "winding").await, Ok("the-first-one".to_owned()));
    let inside = folder.join("token").to_str().unwrap().to_owned();
    link(&inside, "absolute");
    link("../outside", "above");
    link("..data/../../outside", "roundabout");
    link("../acme/token", "out-and-back");
    link("/proc/self/environ", "own");
    std::os::unix::fs::symlink("/etc", folder.join("..2026_02/etc")).unwrap();
    link("..data/etc/hostname", "through");
    link("circle", "circle");
    link("..data", "folder");
    for (name, reason) in [
        ("absolute", "link out of the folder"),
        ("above", "link out of the folder"),
        ("roundabout", "link out of the folder"),
        ("out-and-back", "link out of the folder"),
        ("own", "link out of the folder"),
        ("through", "link out of the folder"),
        ("circle", "more than 8 links"),
        ("folder", "not a regular file"),
    ] {
        let why = resolve(folder.parent().unwrap(), name).await.unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
    let secrets = Secrets::default().with_folder(folder.parent().unwrap().to_owned());
    let all = secrets.of(&tenant("acme")).all().await;
    assert!(all.contains(&"the-second-one".to_owned()), "what a link leads to is redacted: {all:?}");
    assert!(!all.contains(&"outside-the-folder".to_owned()), "{all:?}");
}
