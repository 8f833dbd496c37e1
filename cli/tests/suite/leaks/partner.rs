//! Somebody outside: says back what was said, and refuses so that the refusal is cut off within a secret.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::any;
use bus::SystemClock;
use model::Clock;
use tokio::sync::Notify;

#[derive(Clone, Default)]
struct Heard {
    said: Arc<Mutex<Vec<String>>>,
    callbacks: Arc<Mutex<usize>>,
    bell: Arc<Notify>,
    knows: Arc<Vec<String>>,
}

pub(super) struct Partner {
    pub(super) url: String,
    heard: Heard,
}

impl Partner {
    /// Somebody who knows these secrets and tells them unasked.
    pub(super) async fn new(knows: [&str; 2]) -> Self {
        let knows = Arc::new(knows.map(str::to_owned).to_vec());
        let heard = Heard { knows, ..Heard::default() };
        let router = Router::new()
            .route("/mirror/{*rest}", any(mirror))
            .route("/refuse/{*rest}", any(refuse))
            .with_state(heard.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, heard }
    }

    /// All that was heard.
    pub(super) fn received(&self) -> Vec<String> {
        self.heard.said.lock().unwrap().clone()
    }

    /// Returns once so many callbacks came.
    pub(super) async fn told(&self, callbacks: usize) {
        while *self.heard.callbacks.lock().unwrap() < callbacks {
            self.heard.bell.notified().await;
        }
    }
}

/// All of a request as one text, with the password of basic authentication.
async fn hear(heard: &Heard, request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    let basic =
        parts.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let basic = basic.map(|text| String::from_utf8_lossy(&unbase64(text)).into_owned());
    let text =
        format!("{} {} {:?} {}", parts.method, parts.uri, parts.headers, String::from_utf8_lossy(&body));
    heard.said.lock().unwrap().push(format!("{text} {}", basic.unwrap_or_default()));
    text
}

async fn mirror(State(heard): State<Heard>, request: Request) -> String {
    format!("{} {}", heard.knows.join(" "), hear(&heard, request).await)
}

async fn refuse(State(heard): State<Heard>, request: Request) -> (StatusCode, String) {
    let callback = request.method() == "POST";
    hear(&heard, request).await;
    if callback {
        *heard.callbacks.lock().unwrap() += 1;
        heard.bell.notify_one();
    }
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        format!("{}{} visible-marker-404", "7".repeat(190), heard.knows.join(" ")),
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
