//! Writing history: one real run, copied as often as it takes.

use sqlx::{AssertSqlSafe, PgConnection};

use crate::{Gauge, Result};

/// The tables that a run leaves rows in, and the column that names the run.
const TABLES: [(&str, &str); 4] = [("runs", "id"), ("run_facts", "run"), ("tasks", "run"), ("events", "run")];

impl Gauge {
    /// Copies the newest run of the database: as copies number `first` and on, of `all`. Copies are a second apart, and
    /// the last one lies a second before the original.
    #[expect(clippy::disallowed_methods, reason = "a measurement is not given up on the way")]
    pub async fn copy_run(&self, first: u32, count: u32, all: u32) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        for (table, key) in TABLES {
            let statement = copy_statement(&mut transaction, table, key).await?;
            let copy = sqlx::query(AssertSqlSafe(statement));
            let range = [first, first + count - 1, all].map(i64::from);
            range.into_iter().fold(copy, sqlx::query::Query::bind).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Does what the server would do by itself a while after so many rows were written.
    pub async fn settle_down(&self) -> Result<()> {
        sqlx::raw_sql("vacuum analyze").execute(&self.pool).await?;
        // Only a superuser may ask for it; the server does it by and by.
        let _ = sqlx::raw_sql("checkpoint").execute(&self.pool).await;
        Ok(())
    }
}

/// Copies whatever columns there are; times are moved, the run's id is made of the copy's number and in its order.
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
