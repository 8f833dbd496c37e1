//! No statement of the product scans a whole history: tables that grow with time are read through an index.
//!
//! Each statement is planned with unknown parameters and without sequential scans and the joins that go with them, so that
//! a scan remains only if there is no other way. Scanning a whole index is as bad, unless the index holds only what is
//! active, or the rows come in its order under a limit.

use std::collections::BTreeSet;

use serde_json::Value;
use sqlx::types::Json;
use sqlx::{Executor, PgConnection, Row};

use super::released::{newest_schema, statements};

/// The tables that grow with every run, by the prefix of their names.
const HISTORY: [&str; 5] = ["runs", "run_labels", "tasks", "events", "logs"];

/// Plans statements on the newest schema.
struct Planner {
    connection: PgConnection,
    /// The partial indexes, which hold only what is active.
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

    /// The scans of a history in the plan of a statement.
    async fn scans(&mut self, statement: &str) -> Vec<String> {
        let mut found = Vec::new();
        let plan = self.plan(statement).await.unwrap();
        self.collect_scans(&plan, "", false, &mut found);
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

    fn collect_scans(&self, node: &Value, above: &str, limited: bool, found: &mut Vec<String>) {
        let text = |name: &str| node[name].as_str();
        let (kind, index) = (text("Node Type").unwrap_or_default(), text("Index Name").unwrap_or_default());
        // The index scans of a bitmap are below the scan of the table, and do not name it.
        let table = text("Relation Name").unwrap_or(if kind.starts_with("Bitmap") { above } else { "" });
        let grows = HISTORY.iter().any(|name| {
            table.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        let few = kind.contains("Index")
            && (!node["Index Cond"].is_null() || limited || self.partial.contains(index));
        if grows && kind.ends_with("Scan") && kind != "Bitmap Heap Scan" && !few {
            found.push(format!("{kind} {index} on {table}"));
        }
        // A limit applies as long as rows are passed on one by one.
        let passes = ["Nested Loop", "Append", "Merge Append", "LockRows", "Subquery Scan"];
        let limited = kind == "Limit" || limited && passes.contains(&kind);
        for inner in node["Plans"].as_array().into_iter().flatten() {
            self.collect_scans(inner, table, limited, found);
        }
    }
}

#[tokio::test]
async fn no_statement_scans_a_whole_history() {
    let mut planner = Planner::new().await;
    let mut found = Vec::new();
    for statement in statements() {
        let scans = planner.scans(&statement).await;
        if !scans.is_empty() {
            found.push(format!("{scans:?}: {statement}"));
        }
    }
    assert!(found.is_empty(), "{} statements:\n{}", found.len(), found.join("\n\n"));
}

#[tokio::test]
async fn a_statement_without_an_index_is_found() {
    let mut planner = Planner::new().await;
    for (statement, bad) in [
        ("select id from runs where id = $1", false),
        ("select id from runs where error::text = $1", true),
        ("select count(*) from tasks", true),
        ("delete from events where count < $1", true),
        ("select id from runs where finished_at is not null", true),
        ("select id from runs where finished_at is null", false),
    ] {
        assert_eq!(!planner.scans(statement).await.is_empty(), bad, "{statement}");
    }
}

/// Row-level security must look up the run of each row, and not read all runs of the tenant into a hash first.
#[tokio::test]
async fn tenant_isolation_does_not_scan_all_runs_of_a_tenant() {
    let mut planner = Planner::new().await;
    let tenant_role = "set role ebbflow_tenant; set ebb.tenant = '1'; set enable_seqscan = on";
    planner.connection.execute(sqlx::raw_sql(tenant_role)).await.unwrap();
    let mut isolated = 0;
    for statement in statements() {
        // Only the sweep, in its own role, compares all attempts with all workers.
        if statement.contains("left join workers on workers.id = tasks.worker") {
            continue;
        }
        // The role may not execute every statement.
        let Ok(plan) = planner.plan(&statement).await else { continue };
        let plan = plan.to_string();
        isolated += usize::from(plan.contains("IS DISTINCT FROM"));
        assert!(!plan.contains("hashed SubPlan"), "{plan:#}: {statement}");
    }
    assert!(isolated > 20, "only {isolated} statements are isolated");
}
