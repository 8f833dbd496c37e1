//! Writes a history: copies of one real run.

use anyhow::Result;
use sqlx::{AssertSqlSafe, PgConnection};

use super::Database;

/// The tables that a run leaves rows in, and the column that names the run.
const TABLES: [(&str, &str); 4] = [("runs", "id"), ("run_facts", "run"), ("tasks", "run"), ("events", "run")];

impl Database {
    /// Creates `count` copies of the newest run, numbered from `first`, of `all` copies in total. Copies are a second
    /// apart, and the last one ends a second before the original.
    #[expect(clippy::disallowed_methods, reason = "a measurement is not cancelled half-way")]
    pub(crate) async fn copy_run(&self, first: u32, count: u32, all: u32) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        for (table, key) in TABLES {
            let statement = copy_statement(&mut transaction, table, key).await?;
            let copy = sqlx::query(AssertSqlSafe(statement));
            let range = [first, first + count - 1, all].map(i64::from);
            range.into_iter().fold(copy, sqlx::query::Query::bind).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Does the maintenance that the server would otherwise do some time after many writes.
    pub(crate) async fn vacuum(&self) -> Result<()> {
        sqlx::raw_sql("vacuum analyze").execute(&self.pool).await?;
        // Only a superuser may do this; the server would do it eventually.
        let _ = sqlx::raw_sql("checkpoint").execute(&self.pool).await;
        Ok(())
    }
}

/// Copies all columns. Times are shifted, and the copy's number determines the run's id.
async fn copy_statement(connection: &mut PgConnection, table: &str, key: &str) -> Result<String> {
    let select = "
        select column_name::text, data_type::text from information_schema.columns
         where table_schema = current_schema() and table_name = $1 and is_generated = 'NEVER'
         order by ordinal_position";
    let columns: Vec<(String, String)> = sqlx::query_as(select).bind(table).fetch_all(connection).await?;
    let value = |(name, kind): &(String, String)| match kind.as_str() {
        _ if name == key => "(lpad(to_hex(n), 12, '0') || '70008000000000000000')::uuid".to_owned(),
        "timestamp with time zone" => format!("original.{name} - ($3 - n) * interval '1 second'"),
        _ => format!("original.{name}"),
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let values: Vec<String> = columns.iter().map(value).collect();
    Ok(format!(
        "insert into {table} ({}) select {} from {table} original, generate_series($1::bigint, $2::bigint) n
          where original.{key} = (select id from runs order by id desc limit 1)",
        names.join(", "),
        values.join(", ")
    ))
}
