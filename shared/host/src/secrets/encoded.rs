//! Recognizes encoded secrets, whole or in part: a line break may be anywhere in an encoding, and a log has only lines.

use std::collections::HashSet;
use std::ops::Range;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::view::View;

/// Secrets in one encoding.
#[derive(Clone, Default)]
pub(super) struct Encoded<const FRAGMENT: usize> {
    /// Every part of this length of every secret: it is long enough not to occur by chance.
    fragments: HashSet<[u8; FRAGMENT]>,
    /// The encodings of the whole secret.
    whole: Vec<Vec<u8>>,
}

/// Secrets in base64: eight characters are six bytes.
pub(super) type Base64 = Encoded<8>;

/// Secrets in hexadecimal: twelve digits are six bytes.
pub(super) type Hex = Encoded<12>;

impl<const FRAGMENT: usize> Encoded<FRAGMENT> {
    /// At the start and the end of a text, half a fragment is recognized, if it is the end or the start of an encoding.
    const EDGE: usize = FRAGMENT / 2;

    fn add(&mut self, encoding: Vec<u8>) {
        self.fragments
            .extend(encoding.windows(FRAGMENT).filter_map(|part| <[u8; FRAGMENT]>::try_from(part).ok()));
        if encoding.len() >= FRAGMENT {
            self.whole.push(encoding);
        }
    }

    /// The parts of a text that encode a part of a secret. The view has no whitespace.
    pub(super) fn find(&self, view: &View, text: &[u8]) -> Vec<Range<usize>> {
        let windows = text.windows(FRAGMENT).enumerate();
        let is_known = |part: &[u8]| {
            <[u8; FRAGMENT]>::try_from(part).is_ok_and(|fragment| self.fragments.contains(&fragment))
        };
        let known = windows.filter(|(_, part)| is_known(part)).map(|(at, _)| at..at + FRAGMENT);
        known.chain(self.edges(text)).map(|found| view.origin(found)).collect()
    }

    /// The start of an encoding at the end of a text, and the end of one at the start.
    fn edges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let length = text.len();
        let lengths = || (Self::EDGE..FRAGMENT.min(length + 1)).rev();
        let any = |is_part: &dyn Fn(&[u8]) -> bool| self.whole.iter().any(|encoding| is_part(encoding));
        let last = lengths().find(|n| any(&|encoding| text.ends_with(&encoding[..*n])));
        let first = lengths().find(|n| any(&|encoding| text.starts_with(&encoding[encoding.len() - n..])));
        last.map(|n| length - n..length).into_iter().chain(first.map(|n| 0..n)).collect()
    }
}

impl Base64 {
    /// Recognizes a secret at each alignment in the encoded text, without the characters that also encode its neighbours.
    pub(super) fn add_secret(&mut self, secret: &[u8]) {
        let groups =
            (0..3).filter_map(|skipped| secret.get(skipped..)).map(|rest| &rest[..rest.len() / 3 * 3]);
        for group in groups {
            let (standard, url_safe) =
                (BASE64_STANDARD_NO_PAD.encode(group), BASE64_URL_SAFE_NO_PAD.encode(group));
            if url_safe != standard {
                self.add(url_safe.into_bytes());
            }
            self.add(standard.into_bytes());
        }
    }
}

impl Hex {
    /// Recognizes a secret in lower case, in which texts are compared.
    pub(super) fn add_secret(&mut self, secret: &[u8]) {
        self.add(secret.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
    }
}
