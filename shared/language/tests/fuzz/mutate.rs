//! Changes to texts that do not look at what they mean.

use crate::harness::MAX_BYTES;
use crate::random::Random;

/// A text after a few changes.
pub(crate) fn text(text: String, others: &[String], words: &[&str], random: &mut Random) -> String {
    let mut bytes = text.into_bytes();
    for _ in 0..=random.size(12) {
        change(&mut bytes, others, words, random);
        bytes.truncate(MAX_BYTES);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn change(bytes: &mut Vec<u8>, others: &[String], words: &[&str], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + random.size(64)).min(bytes.len());
    match random.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let piece = bytes[at..end].to_vec();
            insert(bytes, at, &piece);
        }
        3 => insert(bytes, at, random.pick(words).repeat(1 + random.size(2000)).as_bytes()),
        4 => splice(bytes, at, random.pick_text(others).as_bytes(), random),
        5 => lines(bytes, random),
        6 => number(bytes, at, random),
        7 => wrap(bytes, at, end, random),
        8 if at < bytes.len() => bytes[at] = random.next() as u8,
        _ => insert(bytes, at, random.pick(words).as_bytes()),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// The beginning of one and the end of another.
fn splice(bytes: &mut Vec<u8>, at: usize, other: &[u8], random: &mut Random) {
    bytes.truncate(at);
    bytes.extend_from_slice(&other[random.below(other.len())..]);
}

/// Copies, leaves out, moves or indents a line.
fn lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (from, to) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(4) {
        0 => lines.insert(to, lines[from].clone()),
        1 => drop(lines.remove(from)),
        2 => lines.swap(from, to),
        _ => insert(&mut lines[from], 0, " ".repeat(random.size(4096)).as_bytes()),
    }
    *bytes = lines.join(&b'\n');
}

/// Puts another number in the place of the next one.
fn number(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|place| at + place) else { return };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let limits =
        ["0", "-1", "1", "255", "65536", "2147483648", "4294967296", "9223372036854775808", "1e99", "0.1"];
    let number = random.pick(&limits).as_bytes().to_vec();
    bytes.splice(start..start + length, number);
}

fn wrap(bytes: &mut Vec<u8>, at: usize, end: usize, random: &mut Random) {
    let pairs = [("(", ")"), ("[", "]"), ("{", "}"), ("{{ ", " }}"), ("'", "'"), ("\"", "\""), ("$(", ")")];
    let (open, close) = pairs[random.below(pairs.len())];
    let times = 1 + random.size(300);
    insert(bytes, end, close.repeat(times).as_bytes());
    insert(bytes, at, open.repeat(times).as_bytes());
}
