//! Expand, deploy, contract: during a deployment, functions of the last release run on the schema of the new one. Every
//! statement of the last release must therefore be valid on the newest schema, and so must every row that it writes.
//!
//! `EBB_RELEASE=yes cargo test --workspace --test infrastructure` records the statements of this version as those of the
//! last release. Do that for a release, never to silence this test. Before the first release there is nothing to stay
//! compatible with: this version counts as the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sqlx::{Connection, Executor, PgConnection};

use super::reading::{Repository, literals};

/// The separator of statements in the file.
const END: &str = "\n;\n";

/// The first words of statements.
const VERBS: [&str; 5] = ["select ", "insert ", "update ", "delete ", "with "];

fn released() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("shared/store/released/statements.sql")
}

/// The statements of the last release, or of this version before the first one.
fn last_release() -> BTreeSet<String> {
    match std::fs::read_to_string(released()) {
        Ok(text) => text.split(END).map(|statement| statement.trim().to_owned()).collect(),
        Err(_) => statements(),
    }
}

/// The statements of this version: files of SQL, literals in the code that begin like a statement, and the statements that
/// are generated from lists of columns.
pub(crate) fn statements() -> BTreeSet<String> {
    let repository = Repository::read();
    let mut found: BTreeSet<String> = repository
        .files("shared/store/queries/")
        .chain(repository.files("shared/read/queries/"))
        .filter(|(path, _)| path.ends_with(".sql"))
        .map(|(_, text)| text.trim().to_owned())
        .collect();
    let generated = store::generated_statements().into_iter().chain(read::generated_statements());
    found.extend(generated.map(str::to_owned));
    let code = repository.code("shared/store/src/postgres").chain(repository.code("shared/read/src"));
    for (_, text) in code {
        let begins = |literal: &&str| VERBS.iter().any(|verb| literal.trim_start().starts_with(verb));
        let plain = literals(text).filter(begins).filter(|literal| !literal.contains('{'));
        found
            .extend(plain.map(|literal| literal.replace("\\\n", "").replace("\\\"", "\"").trim().to_owned()));
    }
    found
}

/// Which of these cannot be prepared, and why.
async fn refused(connection: &mut PgConnection, statements: &BTreeSet<String>) -> Vec<String> {
    let mut refused = Vec::new();
    for statement in statements {
        let prepare = format!("prepare of_the_release as {statement}");
        match connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(prepare))).await {
            Ok(_) => {
                connection.execute("deallocate of_the_release").await.unwrap();
            }
            Err(error) => refused.push(format!("{error}: {statement}")),
        }
    }
    refused
}

pub(crate) async fn newest_schema() -> (testkit::Database, PgConnection) {
    let database = testkit::database().await;
    store::Postgres::migrate(&database.url).await.unwrap();
    let connection = PgConnection::connect(&database.url).await.unwrap();
    (database, connection)
}

#[tokio::test]
async fn the_last_release_can_go_on_with_the_newest_schema() {
    let (_database, mut connection) = newest_schema().await;
    let now = statements();
    assert!(now.len() > 100, "statements are found where they are: {}", now.len());
    assert_eq!(refused(&mut connection, &now).await, Vec::<String>::new(), "of this version");
    if std::env::var_os("EBB_RELEASE").is_some() {
        let text: Vec<String> = now.into_iter().collect();
        std::fs::create_dir_all(released().parent().unwrap()).unwrap();
        std::fs::write(released(), text.join(END) + "\n").unwrap();
    }
    let before = last_release();
    assert!(before.len() > 100, "of the last release: {}", before.len());
    assert_eq!(refused(&mut connection, &before).await, Vec::<String>::new(), "of the last release");
}

/// The columns that each table is given by these statements when a row is written.
fn given(statements: &BTreeSet<String>) -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let mut given: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    for part in statements.iter().flat_map(|statement| statement.split("insert into ").skip(1)) {
        let (table, rest) = part.split_at(part.find([' ', '\n', '(']).unwrap_or(part.len()));
        let list = rest.split_once('(').and_then(|(before, rest)| {
            // `as` and a name may come first, and nothing else.
            let plain = before.trim().is_empty() || before.trim().starts_with("as ");
            rest.split_once(')').map(|(list, _)| list).filter(|_| plain)
        });
        let list =
            list.unwrap_or_else(|| panic!("a statement does not name its columns: insert into {part}"));
        let columns = list.split(',').map(|column| column.trim().to_owned()).collect();
        given.entry(table.to_owned()).or_default().push(columns);
    }
    given
}

/// The columns that must be given a value and that some of these statements do not know.
async fn unknown(connection: &mut PgConnection, statements: &BTreeSet<String>) -> Vec<String> {
    let needed: Vec<(String, String)> = sqlx::query_as(
        "select relname::text, attname::text from pg_attribute join pg_class on pg_class.oid = attrelid
          where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and attnum > 0
            and not attisdropped and attnotnull and not atthasdef and attidentity = '' and attgenerated = ''",
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let given = given(statements);
    let lacks = |(table, column): &&(String, String)| {
        given.get(table).is_some_and(|statements| statements.iter().any(|known| !known.contains(column)))
    };
    needed.iter().filter(lacks).map(|(table, column)| format!("{table}.{column}")).collect()
}

#[tokio::test]
async fn what_the_newest_schema_adds_the_last_release_need_not_fill() {
    let before = last_release();
    let tables = given(&before);
    assert!(
        ["runs", "tasks", "timers", "outbox"].iter().all(|table| tables.contains_key(*table)),
        "{tables:?}"
    );
    let (_database, mut connection) = newest_schema().await;
    assert_eq!(unknown(&mut connection, &before).await, Vec::<String>::new());
    for harmless in
        ["alter table runs add column x integer", "alter table runs add column y integer not null default 0"]
    {
        connection.execute(harmless).await.unwrap();
    }
    assert_eq!(unknown(&mut connection, &before).await, Vec::<String>::new());
    connection.execute("alter table runs add column z integer not null").await.unwrap();
    assert_eq!(unknown(&mut connection, &before).await, ["runs.z"]);
}

#[tokio::test]
async fn a_migration_that_takes_away_what_the_last_release_uses_is_noticed() {
    let before = last_release();
    for contraction in [
        "alter table runs drop column priority",
        "alter table tasks rename column handed_back to given_back",
        "drop table dead_letters",
    ] {
        let (_database, mut connection) = newest_schema().await;
        connection.execute(contraction).await.unwrap();
        assert!(!refused(&mut connection, &before).await.is_empty(), "{contraction}");
    }
}
