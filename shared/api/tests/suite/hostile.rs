//! Whatever is sent, the answer is one of ours and no defect.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::Fuzzing;

use crate::world::{HELLO, World};

/// Numbers that look random and are the same in every run of the test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.roll(most)).map(|_| self.roll(256) as u8).collect()
    }

    /// The text with some of its bytes lost, doubled or replaced.
    fn mangle(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.roll(8) {
            let place = self.roll(bytes.len());
            match self.roll(4) {
                0 => drop(bytes.remove(place)),
                1 => bytes.insert(place, bytes[place]),
                2 => bytes[place] = b"{}[]:&*!|>-#\"'\n\t \0%,"[self.roll(20)],
                _ => bytes[place] = self.roll(256) as u8,
            }
        }
        bytes
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(1_000_000) as i64 - 500_000),
            3 => json!(f64::MAX),
            4 => json!(String::from_utf8_lossy(&self.bytes(20))),
            5 => (0..self.roll(4)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let names =
                    ["inputs", "labels", "reason", "filter", "action", "workflow", "cursor", "name", "x\0"];
                let fields = (0..self.roll(4))
                    .map(|_| (names[self.roll(names.len())].to_owned(), self.json(depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }
}

/// As long as one likes, with a seed of one's own; without one, with this.
fn fuzzing(usual: u64) -> (Fuzzing, Dice) {
    let fuzzing = Fuzzing::from_env();
    println!("again: {fuzzing}");
    (fuzzing, Dice(fuzzing.seed.unwrap_or(usual).max(1)))
}

#[tokio::test]
async fn no_text_makes_the_compiler_of_definitions_break_down() {
    let (world, (fuzzing, mut dice)) = (World::new().await, fuzzing(0x9E37_79B9_7F4A_7C15));
    let mut cases = 0..500;
    while cases.next().is_some() || fuzzing.goes_on() {
        let body = dice.mangle(HELLO);
        let answer = world.post("/workflows/validate", body.clone()).await;
        let expected = [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
        assert!(expected.contains(&answer.status), "{} {body:?}", answer.body);
    }
}

#[tokio::test]
async fn no_text_grows_beyond_its_size() {
    let world = World::new().await;
    let laughs: String =
        (1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
    let bombs = [
        format!("name: x\na0: &a0 [lol, lol]\n{laughs}tasks: []\n"),
        format!("name: {}x{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{{\"files\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)),
        "- ".repeat(300_000),
    ];
    for bomb in bombs {
        let answer = world.post("/workflows/validate", bomb).await;
        assert!(answer.status.is_client_error(), "{}", answer.body);
    }
}

#[tokio::test]
async fn no_body_makes_an_endpoint_break_down() {
    let (world, (fuzzing, mut dice)) = (World::with_hello().await, fuzzing(42));
    let run = world.start().await;
    let paths: Vec<&str> =
        include_str!("operations.txt").lines().filter_map(|line| line.strip_prefix("POST ")).collect();
    let mut first = paths.iter();
    while let Some(line) = first.next().or_else(|| fuzzing.goes_on().then(|| &paths[dice.roll(paths.len())]))
    {
        let path = line.split(' ').next().unwrap();
        let path =
            path.replace("{id}", &run.to_string()).replace("{task}", "greet").replace("{name}", "hello");
        let path = path.replace("{workflow}", "hello").replace("{kind}", "pool").replace("{number}", "1");
        for _ in 0..10 {
            let body =
                if dice.roll(4) == 0 { dice.bytes(200) } else { dice.json(3).to_string().into_bytes() };
            let answer = world.post(&path, body.clone()).await;
            assert!(!answer.status.is_server_error(), "{path} {body:?}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn no_token_that_nobody_signed_is_believed() {
    let (world, (fuzzing, mut dice)) = (World::new().await, fuzzing(7));
    let good = crate::world::token("api", 3600);
    let mut cases = 0..300;
    while cases.next().is_some() || fuzzing.goes_on() {
        let mangled = dice.mangle(&good);
        let text: String =
            mangled.iter().filter(|byte| (33..127).contains(*byte)).map(|byte| *byte as char).collect();
        let answer =
            world.send(Method::GET, "/runs", &[("authorization", &format!("Bearer {text}"))], "").await;
        match answer.status {
            // The last letter of a signature has bits that mean nothing; what was signed is as it was.
            StatusCode::OK => assert!(text.split('.').take(2).eq(good.split('.').take(2)), "{text}"),
            status => assert_eq!(status, StatusCode::UNAUTHORIZED, "{text}"),
        }
    }
}

#[tokio::test]
async fn no_path_leads_elsewhere() {
    let world = World::with_hello().await;
    for path in [
        "/runs/..%2f..%2fetc%2fpasswd",
        "/workflows/%2e%2e",
        "/workflows/..;/runs",
        "/workflows/hello/../../runs",
        "//runs",
        "/runs/",
        "/workflows/%c0%ae%c0%ae",
        "/workflows/%00",
        "/workflows/%F0%9F%92%A9",
        "/docs/..%2f..%2fCargo.toml",
    ] {
        let answer = world.get(path).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_body_that_is_compressed_or_of_another_type_is_refused() {
    let world = World::with_hello().await;
    for headers in
        [("content-encoding", "gzip"), ("content-encoding", "br, gzip"), ("content-type", "text/xml")]
    {
        let answer = world.send(Method::POST, "/workflows/hello/runs", &[headers], "{}").await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(answer.body["error_code"], "unsupported_media_type");
    }
}
