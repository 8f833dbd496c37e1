//! Makes a failing case smaller.

use std::time::{Duration, Instant};

/// No more time than this is spent on it.
const TIME: Duration = Duration::from_secs(10);

/// Texts that still fail, with as much left out as is soon found to be needless.
pub(crate) fn shrink(mut texts: Vec<String>, fails: impl Fn(&[String]) -> bool) -> Vec<String> {
    let begin = Instant::now();
    for index in 0..texts.len() {
        let mut piece = texts[index].len() / 2;
        while piece > 0 && begin.elapsed() < TIME {
            let mut at = 0;
            while at < texts[index].len() && begin.elapsed() < TIME {
                let shorter = without(&texts[index], at, piece);
                let whole = std::mem::replace(&mut texts[index], shorter);
                if texts[index].len() == whole.len() || !fails(&texts) {
                    texts[index] = whole;
                    at += piece;
                }
            }
            piece /= 2;
        }
    }
    texts
}

fn without(text: &str, from: usize, length: usize) -> String {
    let to = (from + length).min(text.len());
    match (text.get(..from), text.get(to..)) {
        (Some(before), Some(after)) => before.to_owned() + after,
        _ => text.to_owned(),
    }
}
