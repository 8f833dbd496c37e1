//! Readings of a text: as it is, percent-decoded, or with the escapes of JSON resolved.

use std::ops::Range;

/// The bytes of a text after decoding, and the part of the text that each of them comes from.
pub(super) struct View {
    bytes: Vec<u8>,
    origins: Vec<Range<usize>>,
}

/// The bytes that an escape sequence at the start of a text stands for, and the length of that sequence; none if there is no
/// such sequence.
type Decoded = Option<(Vec<u8>, usize)>;

impl View {
    /// All readings of a text that differ.
    pub(super) fn all(text: &str) -> Vec<View> {
        let mut views = vec![View::decoded(text, |_| None)];
        if text.contains('%') {
            views.push(View::decoded(text, percent));
        }
        if text.contains('\\') {
            views.push(View::decoded(text, escape));
        }
        views
    }

    /// The text with every sequence that `decode` recognizes replaced by its bytes.
    fn decoded(text: &str, decode: fn(&[u8]) -> Decoded) -> View {
        let text = text.as_bytes();
        let mut view =
            View { bytes: Vec::with_capacity(text.len()), origins: Vec::with_capacity(text.len()) };
        let mut at = 0;
        while at < text.len() {
            let (bytes, length) = decode(&text[at..]).unwrap_or_else(|| (vec![text[at]], 1));
            for byte in bytes {
                view.bytes.push(byte);
                view.origins.push(at..at + length);
            }
            at += length;
        }
        view
    }

    /// The same without whitespace, which wraps long encodings.
    pub(super) fn without_whitespace(&self) -> View {
        let kept = self.bytes.iter().zip(&self.origins).filter(|(byte, _)| !byte.is_ascii_whitespace());
        let (bytes, origins) = kept.map(|(byte, origin)| (*byte, origin.clone())).unzip();
        View { bytes, origins }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The part of the text that these bytes come from.
    pub(super) fn origin(&self, bytes: Range<usize>) -> Range<usize> {
        self.origins[bytes.start].start..self.origins[bytes.end - 1].end
    }

    /// Where a text occurs.
    pub(super) fn find(&self, needle: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let first = needle.first().copied();
        let mut from = 0;
        std::iter::from_fn(move || {
            while let Some(skipped) = self.bytes.get(from..)?.iter().position(|byte| Some(*byte) == first) {
                let at = from + skipped;
                if self.bytes[at..].starts_with(needle) {
                    from = at + needle.len();
                    return Some(self.origin(at..from));
                }
                from = at + 1;
            }
            None
        })
    }
}

/// `%2F` or `%2f`, whatever it encodes.
fn percent(text: &[u8]) -> Decoded {
    let [b'%', high, low, ..] = text else { return None };
    Some((vec![digit(*high)? << 4 | digit(*low)?], 3))
}

/// `\n`, `\"`, `\u00e9` and the like.
fn escape(text: &[u8]) -> Decoded {
    let [b'\\', kind, rest @ ..] = text else { return None };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' => *kind,
        b'u' => return unicode(rest),
        _ => return None,
    };
    Some((vec![byte], 2))
}

/// The four digits after `\u`, and a second half after a first one.
fn unicode(text: &[u8]) -> Decoded {
    let unit = |digits: &[u8]| {
        let digits = digits.get(..4)?;
        digits.iter().try_fold(0_u32, |unit, byte| Some(unit << 4 | u32::from(digit(*byte)?)))
    };
    let first = unit(text)?;
    let second = text.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(unit);
    let (code, length) = match second {
        Some(second) if (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second) => {
            (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
        }
        _ => (first, 6),
    };
    Some((char::from_u32(code)?.to_string().into_bytes(), length))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
