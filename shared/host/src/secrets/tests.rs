//! Where secrets come from, and what redaction recognizes.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_secret_is_read_from_its_file_and_the_error_of_a_missing_one_explains_how_to_set_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("api-key"), "s3cret\n").unwrap();
    let secrets = Secrets::default().with_folder(folder.path().to_owned());
    let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
    assert_eq!(found["api-key"], "s3cret");
    let failure = secrets.resolve(["other-key".to_owned()].into()).await.unwrap_err();
    assert!(failure.message.contains("EBB_SECRET_OTHER_KEY"), "{}", failure.message);
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
async fn all_secrets_in_the_folder_are_redacted_unless_they_are_short() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("one", "long-enough\n"), ("two", "short"), ("three", "another-one")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let all = Secrets::default().with_folder(folder.path().to_owned()).all().await;
    let has = |text: &str| all.iter().any(|secret| secret == text);
    assert!(has("long-enough") && has("another-one") && !has("short"), "{all:?}");
}

#[tokio::test]
async fn secrets_in_the_environment_are_resolved_and_redacted() {
    let environment = Environment::from_iter([
        ("DATABASE_URL", "postgres://ebb:p%40ss-word@host/db"),
        ("EBB_SECRET_API_KEY", "key-of-the-api"),
        ("EBB_OPERATIONS_TOKEN", "token-of-operators"),
        ("PATH", "postgres://a:not-a-secret@c"),
    ]);
    let secrets = Secrets::from_env(&environment);
    let found = secrets.resolve(["api-key".to_owned()].into()).await.unwrap();
    assert_eq!(found["api-key"], "key-of-the-api");
    let all = secrets.all().await;
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
    let found = secrets.resolve([name.to_owned()].into()).await.map_err(|failure| failure.message)?;
    Ok(found[name].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_secret_is_never_looked_up_by_a_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("outside"), "outside").unwrap();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    std::fs::write(folder.path().join("secrets/.hidden"), "hidden").unwrap();
    for name in ["../outside", "/etc/hostname", "/dev/zero", "a/../../outside", ".hidden", "..", "", "a\0b"] {
        let why = resolve(&folder.path().join("secrets"), name).await.unwrap_err();
        assert!(why.contains("is not a valid name"), "{name}: {why}");
    }
}

#[tokio::test]
async fn only_a_regular_file_of_limited_size_is_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain"), "s3cret-text\n").unwrap();
    std::fs::write(at("largest"), "x".repeat(64 * 1024)).unwrap();
    std::fs::write(at("too-large"), "x".repeat(64 * 1024 + 1)).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    for (link, target) in [("link", "plain"), ("endless", "/dev/zero"), ("gone", "nothing")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(pipe.success());
    assert_eq!(resolve(folder.path(), "plain").await, Ok("s3cret-text".to_owned()));
    assert_eq!(resolve(folder.path(), "largest").await.unwrap().len(), 64 * 1024);
    for (name, reason) in [
        ("link", "links are not followed"),
        ("endless", "links are not followed"),
        ("gone", "links are not followed"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("too-large", "more than 64 KiB"),
    ] {
        let why = resolve(folder.path(), name).await.unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
    let all = Secrets::default().with_folder(folder.path().to_owned()).all().await;
    assert_eq!(all.len(), 2, "the others are not read to be redacted, either");
}
