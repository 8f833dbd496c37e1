//! No statement of the product looks through a whole history: what grows with time is reached by an index.
//!
//! Each statement is planned with parameters that are not known, and with sequential scans and the joins that go with them
//! made dear, so that one is planned only where nothing else is left. A look through a whole index is as bad, unless the
//! index holds only what is under way, or the rows come in its order and no more are taken than are asked for.

use std::collections::BTreeSet;

use serde_json::Value;
use sqlx::types::Json;
use sqlx::{Executor, PgConnection, Row};

use super::released::{newest_schema, statements};

/// What grows with every run, by how the names of its tables begin.
const HISTORY: [&str; 5] = ["runs", "run_labels", "tasks", "events", "logs"];

/// Has statements planned.
struct Planner {
    connection: PgConnection,
    /// The indexes that hold only some rows: what is under way.
    partial: BTreeSet<String>,
    _database: testkit::Database,
}

impl Planner {
    async fn new() -> Self {
        let (_database, mut connection) = newest_schema().await;
        let partial = "select relname::text from pg_index join pg_class on pg_class.oid = indexrelid
                        where indpred is not null
                          and pg_get_expr(indpred, indrelid) !~ '(finished_at|logical_date|parent_run|tx) IS NOT NULL'";
        let partial: Vec<String> = sqlx::query_scalar(partial).fetch_all(&mut connection).await.unwrap();
        for setting in [
            "set enable_seqscan = off",
            "set enable_mergejoin = off",
            "set enable_hashjoin = off",
            "set plan_cache_mode = force_generic_plan",
        ] {
            connection.execute(setting).await.unwrap();
        }
        Self { connection, partial: partial.into_iter().collect(), _database }
    }

    /// What of a history a statement would look through.
    async fn looks(&mut self, statement: &str) -> Vec<String> {
        let mut found = Vec::new();
        let plan = self.plan(statement).await.unwrap();
        self.look_through(&plan, "", false, &mut found);
        found
    }

    async fn plan(&mut self, statement: &str) -> sqlx::Result<Value> {
        let prepare = format!("prepare planned as {statement}");
        self.connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(prepare))).await.unwrap();
        let count =
            "select cardinality(parameter_types) as count from pg_prepared_statements where name = 'planned'";
        let count: i32 = self.connection.fetch_one(count).await.unwrap().get("count");
        let values =
            if count == 0 { String::new() } else { format!("({})", vec!["null"; count as usize].join(", ")) };
        let explain = format!("explain (format json) execute planned{values}");
        let row = self.connection.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(explain))).await;
        self.connection.execute("deallocate planned").await.unwrap();
        let Json(mut plan): Json<Value> = row?.get(0);
        Ok(plan[0]["Plan"].take())
    }

    fn look_through(&self, node: &Value, above: &str, limited: bool, found: &mut Vec<String>) {
        let text = |name: &str| node[name].as_str();
        let (kind, index) = (text("Node Type").unwrap_or_default(), text("Index Name").unwrap_or_default());
        // A bitmap is made by looks into indexes below the look into the table, which name no table.
        let table = text("Relation Name").unwrap_or(if kind.starts_with("Bitmap") { above } else { "" });
        let grows = HISTORY.iter().any(|name| {
            table.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        let few = kind.contains("Index")
            && (!node["Index Cond"].is_null() || limited || self.partial.contains(index));
        if grows && kind.ends_with("Scan") && kind != "Bitmap Heap Scan" && !few {
            found.push(format!("{kind} {index} on {table}"));
        }
        // A limit holds for as long as rows come one by one.
        let passes = ["Nested Loop", "Append", "Merge Append", "LockRows", "Subquery Scan"];
        let limited = kind == "Limit" || limited && passes.contains(&kind);
        for inner in node["Plans"].as_array().into_iter().flatten() {
            self.look_through(inner, table, limited, found);
        }
    }
}

#[tokio::test]
async fn no_statement_looks_through_a_whole_history() {
    let mut planner = Planner::new().await;
    let mut found = Vec::new();
    for statement in statements() {
        let looks = planner.looks(&statement).await;
        if !looks.is_empty() {
            found.push(format!("{looks:?}: {statement}"));
        }
    }
    assert!(found.is_empty(), "{} statements:\n{}", found.len(), found.join("\n\n"));
}

#[tokio::test]
async fn a_statement_without_an_index_is_found_out() {
    let mut planner = Planner::new().await;
    for (statement, bad) in [
        ("select id from runs where id = $1", false),
        ("select id from runs where error::text = $1", true),
        ("select count(*) from tasks", true),
        ("delete from events where count < $1", true),
        ("select id from runs where finished_at is not null", true),
        ("select id from runs where finished_at is null", false),
    ] {
        assert_eq!(!planner.looks(statement).await.is_empty(), bad, "{statement}");
    }
}

/// Whoever reads for a tenant sees the rows of its runs: found one by one, not by putting all its runs into a hash first.
#[tokio::test]
async fn the_wall_between_tenants_is_no_look_through_all_runs_of_one() {
    let mut planner = Planner::new().await;
    let takes_on = "set role ebbflow_tenant; set ebb.tenant = '1'; set enable_seqscan = on";
    planner.connection.execute(sqlx::raw_sql(takes_on)).await.unwrap();
    let mut walled = 0;
    for statement in statements() {
        // What this role may not read or write is not read or written by it.
        let Ok(plan) = planner.plan(&statement).await else { continue };
        let behind_the_wall = plan.to_string();
        walled += usize::from(behind_the_wall.contains("IS DISTINCT FROM"));
        assert!(!behind_the_wall.contains("hashed SubPlan"), "{behind_the_wall:#}: {statement}");
    }
    assert!(walled > 20, "only {walled} statements are read behind the wall");
}
