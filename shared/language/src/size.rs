//! Amounts of bytes as people write them: `512Mi`, `2Gi`, `500M`; a bare number is bytes.

use std::str::FromStr;

/// The units of 1,000 and of 1,024 bytes, as Kubernetes writes them.
const UNITS: [(&str, u64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// The pattern of sizes, for editors.
pub(crate) const PATTERN: &str = "^[0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?$";

/// An amount of at least one byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Size(pub(crate) u64);

/// A text that is not a size.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a size: write, for example, `512Mi`, `2Gi` or `500M`")]
pub(crate) struct NotASize(String);

impl FromStr for Size {
    type Err = NotASize;

    fn from_str(text: &str) -> Result<Self, NotASize> {
        let found = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (number, bytes) = found.unwrap_or((text, 1));
        let size = number.parse::<u64>().ok().and_then(|number| number.checked_mul(bytes));
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        size.filter(|size| *size > 0 && is_number).map(Self).ok_or_else(|| NotASize(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        for (text, bytes) in
            [("1", 1), ("512Mi", 512 << 20), ("2Gi", 2 << 30), ("500M", 500_000_000), ("7k", 7_000)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "0", "Mi", "-1", "+1", "1.5Gi", "1 Gi", "1GB", "99999999999T"] {
            assert_eq!(text.parse::<Size>(), Err(NotASize(text.to_owned())), "{text}");
        }
    }
}
