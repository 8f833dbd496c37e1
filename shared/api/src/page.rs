//! Lists in pages: a limited number of items, and an opaque cursor to the next ones.

use accounts::Bounded;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use host::Problem;
use model::Instant;
use read::Listing;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The default number of items on a page.
pub const DEFAULT_LIMIT: u32 = 20;

/// The maximum number of items on a page.
pub const MAX_LIMIT: u32 = 100;

/// One page of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The `cursor` of the next page; null where this one is the last for now.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// The page that a reader returned.
    pub(crate) fn of<P: Serialize>(listing: Listing<T, P>) -> Self {
        Self { items: listing.items, next_cursor: listing.next.as_ref().map(encode) }
    }

    /// The same page with each item shown in another way.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(show).collect(), next_cursor: self.next_cursor }
    }
}

/// Which page of a list to show.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// Which page of a list to show, for one workflow or for all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowPageQuery {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// The page of a list that a query asks for; `P` is the position in the list after which it begins.
pub(crate) struct Wanted<P> {
    pub(crate) limit: u32,
    pub(crate) after: Option<P>,
}

impl<P: Serialize + DeserializeOwned> Wanted<P> {
    /// Reads the parameters of a query.
    pub(crate) fn read(limit: Option<u32>, cursor: Option<&str>) -> Result<Self, Problem> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Problem::bad_request(format!(
                "`limit` is {limit}; it must be from 1 to {MAX_LIMIT}"
            )));
        }
        Ok(Self { limit, after: cursor.map(decode).transpose()? })
    }

    /// How many rows to read: one more than fit, to see whether there are more.
    pub(crate) fn rows(&self) -> u32 {
        self.limit + 1
    }

    /// The page of rows that are limited in bytes, too.
    pub(crate) fn bounded_page<T>(&self, rows: Bounded<T>, place: impl Fn(&T) -> P) -> Page<T> {
        let last = rows.items.last().filter(|_| rows.cut).map(|last| encode(&place(last)));
        let page = self.page(rows.items, place);
        Page { next_cursor: page.next_cursor.or(last), ..page }
    }

    /// The page of these rows.
    pub(crate) fn page<T>(&self, mut rows: Vec<T>, position: impl Fn(&T) -> P) -> Page<T> {
        let more = rows.len() > self.limit as usize;
        rows.truncate(self.limit as usize);
        let next_cursor = rows.last().filter(|_| more).map(|last| encode(&position(last)));
        Page { items: rows, next_cursor }
    }
}

/// The cursor of the page after a position, for pages of the console that know where to begin.
pub fn cursor_after(position: &u32) -> String {
    encode(position)
}

pub(crate) fn encode<P: Serialize>(position: &P) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(position).expect("positions are numbers and texts"))
}

fn decode<P: DeserializeOwned>(cursor: &str) -> Result<P, Problem> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
    let place = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()).filter(is_storable);
    place.and_then(|place| serde_json::from_value(place).ok()).ok_or_else(|| {
        Problem::bad_request("invalid `cursor`; use `next_cursor` from an earlier page of this list")
    })
}

/// Whether the database can hold every instant and text of a forged cursor, too.
fn is_storable(place: &Value) -> bool {
    match place {
        Value::Array(parts) => parts.iter().all(is_storable),
        Value::String(text) => {
            let year = text.parse::<Instant>().map_or(true, |at| model::instant::has_valid_year(&at));
            year && !text.contains('\0')
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_cursor() {
        let wanted = Wanted::<u32>::read(Some(3), None).unwrap();
        assert_eq!(wanted.page(vec![1, 2, 3], |row| *row), Page { items: vec![1, 2, 3], next_cursor: None });
    }

    #[test]
    fn a_cursor_leads_to_where_its_page_ended() {
        let page = Wanted::<u32>::read(Some(2), None).unwrap().page(vec![1, 2, 3], |row| *row);
        assert_eq!(page.items, [1, 2]);
        let next = Wanted::<u32>::read(Some(2), page.next_cursor.as_deref()).unwrap();
        assert_eq!(next.after, Some(2));
    }

    #[test]
    fn limits_and_cursors_that_make_no_sense_are_refused() {
        for limit in [0, 101] {
            assert!(Wanted::<u32>::read(Some(limit), None).is_err());
        }
        let far = encode(&("-262143-01-01T00:00:00Z", "x"));
        assert!(Wanted::<(Instant, String)>::read(None, Some(&far)).is_err(), "no database holds that year");
        for cursor in ["", "§", "bm8", "InRleHQi"] {
            assert!(Wanted::<u32>::read(None, Some(cursor)).is_err(), "{cursor}");
        }
    }
}
