//! Event streams end by themselves, before a timeout of the platform does.

use super::reading::Repository;

/// The number of seconds that follows `start`, which may be written as a product.
fn seconds(text: &str, start: &str) -> Option<u64> {
    let rest = &text[text.find(start)? + start.len()..];
    let written = rest.split([')', '\n']).next()?;
    written.split('*').map(|factor| factor.trim().parse::<u64>().ok()).product()
}

/// The test of a deploy requires timeouts that are longer than a stream: it must know how long a stream is.
pub(crate) fn streams(repository: &Repository) -> Vec<String> {
    let (code, test) = ("shared/api/src/live/listener.rs", "tools/deploy-test/checks.py");
    let lasts = seconds(repository.file(code), "MAX_CONNECTION: Duration = Duration::from_secs(");
    let required = seconds(repository.file(test), "STREAM_SECONDS = ");
    match lasts.is_some() && lasts == required {
        true => Vec::new(),
        false => {
            vec![format!("event streams: {lasts:?} seconds in {code}, {required:?} seconds in {test}")]
        }
    }
}
