//! Lists that are limited in bytes: a page of large rows ends early, so no list takes more memory than this.

use futures::TryStreamExt;
use futures::stream::BoxStream;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::Result;

/// A page of a list ends with the row that exceeds this, in bytes as the database sends them.
pub const MAX_PAGE_BYTES: usize = 512 * 1024;

/// A JSON value in a list that is longer, in bytes, is left out; an [`Excerpt`](crate::Excerpt) stands for it.
pub const MAX_LISTED_VALUE: i32 = 4 * 1024;

/// The part of a list that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Bounded<T> {
    /// The items, at least one if there is any.
    pub items: Vec<T>,
    /// Whether there are more items that did not fit.
    pub cut: bool,
}

impl<T> Bounded<T> {
    /// The same with each item made into another.
    pub fn try_map<U>(self, make: impl FnMut(T) -> Result<U>) -> Result<Bounded<U>> {
        Ok(Bounded { items: self.items.into_iter().map(make).collect::<Result<_>>()?, cut: self.cut })
    }
}

/// Reads rows one by one, until there are no more or the page has more than `max_bytes`. The driver skips what is left
/// unread.
pub async fn rows(
    mut rows: BoxStream<'_, sqlx::Result<PgRow>>,
    max_bytes: usize,
) -> sqlx::Result<Bounded<PgRow>> {
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        if bytes > max_bytes {
            return Ok(Bounded { items, cut: true });
        }
        bytes += size(&row);
        items.push(row);
    }
    Ok(Bounded { items, cut: false })
}

/// The bytes of a row's values.
pub(super) fn size(row: &PgRow) -> usize {
    let value = |column| row.try_get_raw(column).ok()?.as_bytes().ok().map(<[u8]>::len);
    (0..row.len()).filter_map(value).sum()
}
