use super::{LONGEST, Lines};

async fn check(bytes: &[u8], expected: &[&str]) {
    let mut lines = Lines::of(bytes);
    let mut found = Vec::new();
    while let Some(line) = lines.next().await {
        found.push(line);
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_line_ends_where_its_program_says_or_where_the_output_does() {
    check(b"", &[]).await;
    check(b"one\ntwo\n", &["one", "two"]).await;
    check(b"one\r\n\ntwo", &["one", "", "two"]).await;
    check(b"bad \xff byte\n", &["bad \u{fffd} byte"]).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_broken_into_several() {
    let full = "x".repeat(LONGEST);
    check(format!("{full}\nnext").as_bytes(), &[&full, "next"]).await;
    check(format!("{full}yz\nnext").as_bytes(), &[&full, "yz", "next"]).await;
}

#[tokio::test]
async fn no_character_is_broken_with_its_line() {
    let almost = "x".repeat(LONGEST - 1);
    check(format!("{almost}é!\n").as_bytes(), &[&almost, "é!"]).await;
}
