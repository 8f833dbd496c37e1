//! Workflows and their versions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use auth::{Denied, Permission};
use model::{CustomType, Instant, TypeName};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Row};
use store::{Bounded, MAX_PAGE_BYTES, VersionRecord, WorkflowRecord, bounded, rows, select, storable};

use crate::{Listing, Reader, Result, listing};

/// The order of a list of workflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WorkflowSort {
    /// By name, from A to Z.
    #[default]
    Name,
    /// By name, from Z to A.
    NameDown,
    /// By their last change, latest first.
    LastChanged,
    /// By their last change, earliest first.
    FirstChanged,
}

/// A workflow's position in a list of any order: its last change, and its name.
pub type WorkflowCursor = (Instant, String);

/// Which workflows to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkflowFilter {
    /// Only those with this tag.
    pub tag: Option<String>,
    /// Only those with this text in their name, description or tags, ignoring case.
    pub text: Option<String>,
    /// The order of the list.
    pub sort: WorkflowSort,
    /// Only those after this position in the list.
    pub after: Option<WorkflowCursor>,
    /// The maximum number of workflows.
    pub limit: u32,
}

/// How many workflows are read at once where not all of them pass.
const PAGE_SIZE: u32 = 100;

/// How many workflows are examined for a page at most.
const MAX_EXAMINED: usize = 1_000;

impl WorkflowFilter {
    fn passes(&self, record: &WorkflowRecord) -> bool {
        let workflow = &record.version.workflow;
        let tagged = self.tag.as_ref().is_none_or(|tag| workflow.tags.contains(tag));
        let contains = |text: &String| {
            let text = text.to_lowercase();
            let texts = [&record.name].into_iter().chain(&workflow.description).chain(&workflow.tags);
            texts.into_iter().any(|own| own.to_lowercase().contains(&text))
        };
        tagged && self.text.as_ref().is_none_or(contains)
    }
}

fn position(record: &WorkflowRecord) -> WorkflowCursor {
    (record.updated_at, record.name.clone())
}

/// The workflows that a caller may read, and their versions.
#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a> {
    pub(crate) reader: &'a Reader,
}

impl Workflows<'_> {
    /// One workflow with its active version.
    pub async fn get(&self, name: &str) -> Result<WorkflowRecord> {
        self.reader.check_workflow(Permission::Read, name)?;
        let found =
            select::workflow(&mut *self.reader.connection().await?, self.reader.tenant(), name).await?;
        Ok(found.ok_or_else(|| Denied::NotFound(format!("workflow `{name}`")))?)
    }

    /// Versions of a workflow, newest first, below the given number.
    pub async fn versions(
        &self,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Listing<VersionRecord, i32>> {
        self.reader.check_workflow(Permission::Read, workflow)?;
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(include_str!("../queries/list_versions.sql"))
            .bind(self.reader.tenant().0)
            .bind(storable(workflow))
            .bind(before)
            .bind(listing::rows(limit))
            .fetch(&mut *connection);
        let found = bounded::rows(found, MAX_PAGE_BYTES).await?.try_map(|row| rows::version(&row))?;
        Ok(Listing::bounded(found, limit, |version: &VersionRecord| version.number))
    }

    /// The version of a workflow with that number.
    pub async fn version(&self, workflow: &str, number: i32) -> Result<Option<VersionRecord>> {
        self.reader.check_workflow(Permission::Read, workflow)?;
        let mut connection = self.reader.connection().await?;
        Ok(select::numbered_version(&mut *connection, self.reader.tenant(), workflow, number).await?)
    }

    /// The workflows in use that pass a filter and that the caller may read, in order. A bounded number is examined.
    pub async fn list(&self, filter: &WorkflowFilter) -> Result<Listing<WorkflowRecord, WorkflowCursor>> {
        self.reader.caller.check_some(Permission::Read)?;
        let passes = |record: &WorkflowRecord| {
            self.reader.may(Permission::Read, &record.name) && filter.passes(record)
        };
        let picky = filter.tag.is_some() || filter.text.is_some();
        let at_once = if picky { PAGE_SIZE } else { filter.limit.saturating_add(1) };
        let (mut after, mut found, mut examined) = (filter.after.clone(), Vec::new(), 0);
        let left_off = loop {
            let Bounded { items: rows, cut } = self.sorted(filter.sort, after.as_ref(), at_once).await?;
            let all = !cut && rows.len() < at_once as usize;
            // Definitions are large: a page that was cut for its size is not filled up.
            examined += if cut { MAX_EXAMINED } else { rows.len() };
            after = rows.last().map(position).or(after);
            found.extend(rows.into_iter().filter(passes));
            match (all, found.len() > filter.limit as usize || examined >= MAX_EXAMINED) {
                (true, _) => break None,
                (false, true) => break after,
                (false, false) => {}
            }
        };
        let mut page = Listing::new(found, filter.limit, position);
        page.next = page.next.or(left_off);
        Ok(page)
    }

    /// The custom task types of each workflow in use that the caller may read, those of the newest versions first. A
    /// bounded number of workflows is examined.
    pub async fn custom_types(&self) -> Result<Bounded<(String, BTreeMap<TypeName, CustomType>)>> {
        self.reader.caller.check_some(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        let found = sqlx::query(include_str!("../queries/list_custom_types.sql"))
            .bind(self.reader.tenant().0)
            .bind(MAX_EXAMINED as i64 + 1)
            .fetch(&mut *connection);
        let found = bounded::rows(found, MAX_PAGE_BYTES).await?;
        let cut = found.cut || found.items.len() > MAX_EXAMINED;
        let mut types = Vec::new();
        for row in found.items.into_iter().take(MAX_EXAMINED) {
            let name: String = row.try_get("name")?;
            // What another version of the program declared, and this one cannot read, is left out.
            if self.reader.may(Permission::Read, &name)
                && let Ok(Json(used)) = row.try_get("types")
            {
                types.push((name, used));
            }
        }
        Ok(Bounded { items: types, cut })
    }

    async fn sorted(
        &self,
        sort: WorkflowSort,
        after: Option<&WorkflowCursor>,
        limit: u32,
    ) -> Result<Bounded<WorkflowRecord>> {
        let (statement, by_change) = match sort {
            WorkflowSort::Name => (0, false),
            WorkflowSort::NameDown => (1, false),
            WorkflowSort::FirstChanged => (2, true),
            WorkflowSort::LastChanged => (3, true),
        };
        let mut query = sqlx::query(AssertSqlSafe(STATEMENTS[statement].as_str()))
            .bind(self.reader.tenant().0)
            .bind(after.map(|(_, name)| storable(name)))
            .bind(i64::from(limit));
        if by_change {
            query = query.bind(after.map(|(updated_at, _)| *updated_at));
        }
        let mut connection = self.reader.connection().await?;
        let found = bounded::rows(query.fetch(&mut *connection), MAX_PAGE_BYTES).await?;
        Ok(found.try_map(|row| rows::workflow(&row))?)
    }
}

/// A page of a tenant's workflows in use, each with its active version, in each order.
static STATEMENTS: LazyLock<[String; 4]> = LazyLock::new(|| {
    let by_name = ("workflows.name", "$2", "workflows.name");
    let by_change = (
        "(workflows.updated_at, workflows.name)",
        "($4::timestamptz, $2)",
        "workflows.updated_at {}, workflows.name",
    );
    [(by_name, ">"), (by_name, "<"), (by_change, ">"), (by_change, "<")].map(
        |((position, last, order), after)| {
            let direction = if after == ">" { "asc" } else { "desc" };
            let order = order.replace("{}", direction);
            format!(
                "select workflows.tenant, workflows.name, workflows.archived, workflows.updated_at,
                    workflows.created_at as workflow_created_at, workflows.paused_at, workflows.paused_by,
                    workflows.pause_reason, versions.id, versions.number, versions.hash, versions.definition,
                    versions.source, versions.created_at, versions.created_by
               from workflows
               join versions on versions.id = workflows.active_version
              where workflows.tenant = $1 and not workflows.archived
                and ($2::text is null or {position} {after} {last})
              order by {order} {direction}
              limit $3"
            )
        },
    )
});

/// All of them, for tests that prepare and plan every statement.
pub(crate) fn statements() -> Vec<&'static str> {
    STATEMENTS.iter().map(String::as_str).collect()
}
