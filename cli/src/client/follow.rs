//! Reads a list that grows, such as a log.

use serde::de::DeserializeOwned;

use super::{Client, Result};

/// Remembers how far a list was read. The end of a list has no cursor yet, so the last page is fetched again and the items
/// already seen are skipped.
pub struct Follower {
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    cursor: Option<String>,
    seen: usize,
}

impl Follower {
    /// Starts at the beginning of the list at that path.
    pub fn new(path: &[&str], query: &[(&'static str, String)]) -> Self {
        let path = path.iter().map(|part| part.to_string()).collect();
        Self { path, query: query.to_vec(), cursor: None, seen: 0 }
    }

    /// The items added since the last call.
    pub async fn new_items<T: DeserializeOwned>(&mut self, client: &Client) -> Result<Vec<T>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut items = Vec::new();
        loop {
            let mut query = self.query.clone();
            query.extend(self.cursor.clone().map(|cursor| ("cursor", cursor)));
            let page = client.page(&path, query).await?;
            let length = page.items.len();
            items.extend(page.items.into_iter().skip(self.seen));
            match page.next_cursor {
                Some(cursor) => (self.cursor, self.seen) = (Some(cursor), 0),
                None => {
                    self.seen = length;
                    return Ok(items);
                }
            }
        }
    }
}
