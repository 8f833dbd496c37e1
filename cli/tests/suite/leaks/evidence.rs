//! Everything that a person can read.

use reqwest::Method;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::project::Dev;

/// The length of a piece of a secret that counts as a leak.
const PIECE: usize = 12;

/// The texts that were found, by place, and the secrets that must not be in them.
pub(super) struct Evidence {
    secrets: Vec<String>,
    found: Vec<(String, String)>,
}

impl Evidence {
    pub(super) fn of(secrets: &[&str]) -> Self {
        Self { secrets: secrets.iter().map(|secret| (*secret).to_owned()).collect(), found: Vec::new() }
    }

    pub(super) fn hide(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    pub(super) fn add(&mut self, place: &str, text: String) {
        self.found.push((place.to_owned(), text));
    }

    /// Whether a place of that name holds the text.
    pub(super) fn finds(&self, place: &str, text: &str) -> bool {
        self.found.iter().any(|(name, found)| name.contains(place) && found.contains(text))
    }

    pub(super) fn places(&self) -> Vec<&str> {
        self.found.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Reads every endpoint for every run and task, and every page.
    pub(super) async fn read_everything(&mut self, dev: &Dev) {
        let document = dev.get("/openapi.json").await;
        let runs = ids(&dev.get("/runs?limit=100").await, "id");
        assert!(runs.len() > 5, "{runs:?}");
        let mut pages: Vec<String> =
            ["/", "/runs", "/workflows", "/triggers", "/workers", "/dead-letters", "/audit"]
                .iter()
                .chain(&["/timers", "/schedules", "/limits", "/doctor", "/queues", "/tokens", "/palette"])
                .map(ToString::to_string)
                .collect();
        let mut names = vec!["good".to_owned()];
        for run in &runs {
            let shown = dev.get(&format!("/runs/{run}")).await;
            names.push(shown["workflow"].as_str().unwrap_or_default().to_owned());
            let tasks = ids(&dev.get(&format!("/runs/{run}/tasks")).await, "name");
            for path in readable(&document) {
                for task in &tasks {
                    self.read(dev, &path.replace("{id}", run).replace("{task}", task)).await;
                }
            }
            pages.push(format!("/runs/{run}"));
            pages.extend(tasks.iter().map(|task| format!("/runs/{run}/tasks/{task}")));
            pages.extend(tasks.iter().map(|task| format!("/runs/{run}/tasks/{task}/log")));
        }
        for letter in ids(&dev.get("/dead-letters").await, "id") {
            self.read(dev, &format!("/dead-letters/{letter}")).await;
        }
        names.dedup();
        for name in names {
            for path in readable(&document) {
                let path =
                    path.replace("{name}", &name).replace("{workflow}", &name).replace("{number}", "1");
                self.read(dev, &path.replace("{kind}", "queue").replace("{trigger}", "partner")).await;
            }
            pages.extend(
                ["", "/trigger", "/source", "/versions"].map(|more| format!("/workflows/{name}{more}")),
            );
        }
        for page in pages {
            let url = format!("{}{page}", dev.url);
            let answer =
                reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
            self.add(&format!("page {page}"), answer.text().await.unwrap());
        }
    }

    async fn read(&mut self, dev: &Dev, path: &str) {
        let place = format!("GET /api/v1{path}");
        if path.contains('{') || self.found.iter().any(|(known, _)| *known == place) {
            return;
        }
        let answer = dev.request(Method::GET, path).send().await.unwrap();
        let headers = format!("{:?}", answer.headers());
        self.add(&place, format!("{headers}\n{}", answer.text().await.unwrap()));
    }

    /// Every row of every table, as text.
    pub(super) async fn read_tables(&mut self, url: &str) {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let tables: Vec<String> =
            sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
                .fetch_all(&mut connection)
                .await
                .unwrap();
        assert!(tables.len() > 20, "{tables:?}");
        for table in tables {
            let rows = AssertSqlSafe(format!("select rows::text from \"{table}\" rows"));
            let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
            self.add(&format!("table {table}"), rows.join("\n"));
        }
    }

    /// Fails if a part of a secret is found, in any encoding.
    pub(super) fn show_leaks(&self) {
        let mut leaks = Vec::new();
        for secret in &self.secrets {
            for needle in encodings(secret) {
                for (place, text) in &self.found {
                    if let Some(at) = text.find(&needle) {
                        let from = text.floor_char_boundary(at.saturating_sub(100));
                        let to = text.floor_char_boundary((at + 100).min(text.len()));
                        leaks.push(format!("{place} shows `{needle}` of `{secret}`: …{}…", &text[from..to]));
                    }
                }
            }
        }
        assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    }
}

/// The paths of the document that can be read. The stream of events never ends, and is left out.
fn readable(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().unwrap();
    let answering = paths.iter().filter(|(path, operations)| {
        operations.get("get").is_some() && !path.ends_with("/api/v1/events") && *path != "/events"
    });
    answering.map(|(path, _)| path.trim_start_matches("/api/v1").to_owned()).collect()
}

/// A field of each item of a list.
fn ids(list: &Value, field: &str) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

/// The beginning and the end of a secret: plain, in hexadecimal, and as JSON and pages escape them.
fn encodings(secret: &str) -> Vec<String> {
    let last = &secret[secret.len() - PIECE..];
    // Planted secrets share a prefix that is not secret, and so do tokens.
    let first = secret.strip_prefix("planted").map_or(last, |rest| &rest[..PIECE]);
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let json = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
    let page = |text: &str| text.replace('"', "&#34;");
    let mut encodings: Vec<String> = [first, last]
        .iter()
        .flat_map(|part| [(*part).to_owned(), hex(part), json(part), page(part)])
        .collect();
    encodings.sort();
    encodings.dedup();
    encodings
}
