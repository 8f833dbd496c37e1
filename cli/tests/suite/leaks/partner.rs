//! A server outside: it echoes requests, and refuses some with an error that is truncated in the middle of a secret.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::any;
use bus::SystemClock;
use model::Clock;
use tokio::sync::Notify;

#[derive(Clone, Default)]
struct Received {
    texts: Arc<Mutex<Vec<String>>>,
    callbacks: Arc<Mutex<usize>>,
    changed: Arc<Notify>,
    knows: Arc<Vec<String>>,
}

pub(super) struct Partner {
    pub(super) url: String,
    received: Received,
}

impl Partner {
    /// Starts a server that adds these secrets to every answer.
    pub(super) async fn new(knows: [&str; 2]) -> Self {
        let knows = Arc::new(knows.map(str::to_owned).to_vec());
        let received = Received { knows, ..Received::default() };
        let router = Router::new()
            .route("/mirror/{*rest}", any(mirror))
            .route("/refuse/{*rest}", any(refuse))
            .with_state(received.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, received }
    }

    /// The requests so far, as texts.
    pub(super) fn received(&self) -> Vec<String> {
        self.received.texts.lock().unwrap().clone()
    }

    /// Waits for this many callbacks.
    pub(super) async fn received_callbacks(&self, callbacks: usize) {
        while *self.received.callbacks.lock().unwrap() < callbacks {
            self.received.changed.notified().await;
        }
    }
}

/// Records a request as one text, with the decoded password of basic authentication. Returns it without.
async fn record(received: &Received, request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    let basic =
        parts.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let basic = basic.map(|text| String::from_utf8_lossy(&unbase64(text)).into_owned());
    let text =
        format!("{} {} {:?} {}", parts.method, parts.uri, parts.headers, String::from_utf8_lossy(&body));
    received.texts.lock().unwrap().push(format!("{text} {}", basic.unwrap_or_default()));
    text
}

async fn mirror(State(received): State<Received>, request: Request) -> String {
    format!("{} {}", received.knows.join(" "), record(&received, request).await)
}

async fn refuse(State(received): State<Received>, request: Request) -> (StatusCode, String) {
    let callback = request.method() == "POST";
    record(&received, request).await;
    if callback {
        *received.callbacks.lock().unwrap() += 1;
        received.changed.notify_one();
    }
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        format!("{}{} visible-marker-404", "7".repeat(190), received.knows.join(" ")),
    )
}

fn unbase64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = text.bytes().filter_map(|byte| letters.iter().position(|letter| *letter == byte));
    let bits: Vec<bool> = bits.flat_map(|value| (0..6).rev().map(move |bit| value >> bit & 1 == 1)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | u8::from(*bit))).collect()
}

/// The timestamp and the signature of a webhook.
pub(super) fn sign(secret: &str, body: &str) -> (String, String) {
    let timestamp = SystemClock.now().timestamp().to_string();
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = aws_lc_rs::hmac::sign(&key, format!("{timestamp}.{body}").as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    (timestamp, format!("v1={digits}"))
}
