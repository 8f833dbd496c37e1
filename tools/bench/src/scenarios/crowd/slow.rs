//! Clients that send or read one byte at a time, and never end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ebb::client::Server;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, interval};

use super::strangers::Counters;

/// How often a slow client sends or reads a byte.
const SLOW_INTERVAL: Duration = Duration::from_secs(2);

/// What a slow client is slow at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slow {
    Head,
    Body,
    /// It asks for something large, and does not read it.
    Reader,
}

impl Slow {
    /// All kinds, in turn.
    pub(super) fn number(number: usize) -> Self {
        [Self::Head, Self::Body, Self::Reader][number % 3]
    }

    /// What it sends at once.
    fn request(self, token: &str) -> String {
        match self {
            Self::Head => "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".into(),
            Self::Body => format!(
                "POST /api/v1/workflows HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/yaml\r\nContent-Length: 1000000\r\n\r\n"
            ),
            Self::Reader => "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        }
    }

    /// Goes on until the server closes the connection.
    async fn continue_on(self, mut stream: TcpStream, ticks: &mut Interval) {
        let mut works = true;
        while works {
            ticks.tick().await;
            works = match self {
                Self::Head | Self::Body => stream.write_all(b"x").await.is_ok(),
                Self::Reader => stream.read(&mut [0]).await.is_ok_and(|read| read > 0),
            };
        }
    }
}

/// Is slow until it is stopped. Connects again when the server has enough.
pub(super) async fn be_slow(slow: Slow, server: Server, counters: Arc<Counters>) {
    let Ok(url) = Url::parse(&server.url) else { return };
    let address = (url.host_str().unwrap_or_default().to_owned(), url.port().unwrap_or(80));
    let mut ticks = interval(SLOW_INTERVAL);
    while !counters.is_stopped() {
        ticks.tick().await;
        let Ok(mut stream) = TcpStream::connect(&address).await else { continue };
        counters.slow_clients.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(slow.request(&server.token).as_bytes()).await.is_ok() {
            slow.continue_on(stream, &mut ticks).await;
        }
    }
}
