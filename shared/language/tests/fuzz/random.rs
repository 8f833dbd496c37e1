//! Numbers that look random and are the same every time (SplitMix64).

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA24B_AED4_963E_E407))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..end`, or 0 if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, among: &[&'a T]) -> &'a T {
        among[self.below(among.len())]
    }

    pub(crate) fn pick_text<'a>(&mut self, among: &'a [String]) -> &'a str {
        &among[self.below(among.len())]
    }

    /// A number up to `most`, small ones more often.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.max(1).ilog2() as usize + 1);
        self.below(2 << bits).min(most)
    }
}
