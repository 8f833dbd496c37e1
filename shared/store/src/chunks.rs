//! Events and log lines are kept in chunks that know the number of their first item.

/// Items with a number of `from` or higher, each number once, though chunks may overlap.
pub(crate) fn numbered<T>(
    chunks: impl IntoIterator<Item = (i64, Vec<T>)>,
    from: i64,
    limit: u32,
) -> Vec<(i64, T)> {
    let mut next = from;
    let mut found = Vec::new();
    let items = chunks.into_iter().flat_map(|(first, items)| (first..).zip(items));
    for (number, item) in items {
        if number >= next && found.len() < limit as usize {
            found.push((number, item));
            next = number + 1;
        }
    }
    found
}
