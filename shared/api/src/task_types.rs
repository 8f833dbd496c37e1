//! Task types: the built-in ones, and the custom ones that the tenant's workflows use.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{CustomType, TypeName};
use runtime::TaskType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Api, Caller};

/// All task types that the caller can use or see in use.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskTypeList {
    /// The built-in types first, then the custom ones by name.
    pub items: Vec<TaskTypeView>,
    /// Whether there are more: a response has the custom types of at most 1,000 workflows, those of the newest versions, and
    /// about 512 KiB of declarations.
    pub truncated: bool,
}

/// A task type, built in or custom, with its settings and who uses it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskTypeView {
    /// The word after `type:` in a definition.
    pub name: String,
    /// Whether a file in `types/` declares it; otherwise it is built in.
    pub custom: bool,
    /// A description of the type, for people.
    pub description: Option<String>,
    /// A letter or an emoji that stands for it.
    pub icon: Option<String>,
    /// The JSON Schema of its settings.
    pub config: Value,
    /// The JSON Schema of its output; none if every output is accepted.
    pub output: Option<Value>,
    /// The queue of tasks that name none.
    pub queue: Option<String>,
    /// How long an attempt may take, unless the task says otherwise.
    pub timeout_seconds: Option<u32>,
    /// The number of retries, unless the task says otherwise.
    pub max_retries: Option<u32>,
    /// The active workflows that use it and that the caller may read; only of custom types.
    pub workflows: Vec<TypeUseView>,
}

/// A workflow that uses a custom type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TypeUseView {
    /// The name of the workflow.
    pub workflow: String,
    /// Whether its active version was registered with an earlier declaration of the type than the one shown.
    pub outdated: bool,
}

/// The task types as the caller may see them. Of a type that was declared differently over time, the newest is shown.
pub async fn list(api: &Api, caller: &Caller) -> Result<TaskTypeList, Problem> {
    let mut custom: BTreeMap<TypeName, (CustomType, Vec<TypeUseView>)> = BTreeMap::new();
    let used = api.reader(caller).workflows().custom_types().await?;
    for (workflow, types) in used.items {
        for (name, declared) in types {
            let (newest, uses) = custom.entry(name).or_insert_with(|| (declared.clone(), Vec::new()));
            uses.push(TypeUseView { workflow: workflow.clone(), outdated: *newest != declared });
        }
    }
    let custom = custom.into_iter().map(|(name, (declared, mut workflows))| {
        workflows.sort_by(|one, other| one.workflow.cmp(&other.workflow));
        TaskTypeView::custom(&name, declared, workflows)
    });
    let built_in = runtime::built_in_types().iter().map(TaskTypeView::built_in);
    Ok(TaskTypeList { items: built_in.chain(custom).collect(), truncated: used.cut })
}

impl TaskTypeView {
    fn built_in(task: &TaskType) -> Self {
        Self {
            name: task.kind.to_string(),
            custom: false,
            description: Some(task.summary.to_string()),
            icon: None,
            config: task.schema.clone(),
            output: None,
            queue: None,
            timeout_seconds: None,
            max_retries: None,
            workflows: Vec::new(),
        }
    }

    fn custom(name: &TypeName, declared: CustomType, workflows: Vec<TypeUseView>) -> Self {
        let CustomType { description, icon, config, output, queue, timeout_seconds, max_retries } = declared;
        Self {
            name: name.to_string(),
            custom: true,
            description,
            icon,
            config,
            output,
            queue,
            timeout_seconds,
            max_retries,
            workflows,
        }
    }
}

pub(crate) async fn get_list(State(api): State<Api>, caller: Caller) -> Result<Json<TaskTypeList>, Problem> {
    list(&api, &caller).await.map(Json)
}
