//! Signals and approvals: what runs wait for from people and programs.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use host::Problem;
use model::{InputType, RunId, TaskSpec};
use runtime::{Approval, Command, Settled};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::request::{self, Path, Text};
use crate::views::RunView;
use crate::{Api, Caller, error, runs, tasks};

/// The maximum length of a signal's name.
const MAX_NAME: usize = 100;

/// The answers to the approval's form.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    #[serde(default)]
    fields: Map<String, Value>,
}

/// The reason for a rejection.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectBody {
    #[serde(default, deserialize_with = "request::brief")]
    #[schemars(length(max = 1000))]
    reason: Option<String>,
}

/// Sends a signal. A task that waits for it continues with its payload; if none waits yet, the signal is kept.
pub(crate) async fn post_signal(
    State(api): State<Api>,
    caller: Caller,
    Path((id, name)): Path<(RunId, String)>,
    headers: HeaderMap,
    Text(body): Text,
) -> Result<Json<RunView>, Problem> {
    request::check_type(&headers, &["application/json"])?;
    if name.is_empty() || name.len() > MAX_NAME {
        let message = format!("a signal's name must have 1 to {MAX_NAME} characters");
        return Err(Problem::bad_request(message));
    }
    let payload = if body.trim().is_empty() { Value::Null } else { request::parse(&body)? };
    runs::find(&api, &caller, id).await?;
    let command = Command::Signal { name, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "has ended and accepts no signals").await
}

/// Approves a task that waits for approval.
pub(crate) async fn post_approve(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    request::Json(body): request::Json<ApproveBody>,
) -> Result<Json<RunView>, Problem> {
    let found = tasks::find(&api, &caller, id, &task).await?;
    let spec = found.spec();
    let form = form_of(spec)?;
    check_approver(&form, spec, &caller)?;
    check_fields(&form, &body.fields)?;
    let payload = Value::Object(body.fields);
    let task = found.record.task.index;
    let command = Command::Answer { task, approved: true, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "is not waiting for an answer to this task").await
}

/// Rejects a task, which fails.
pub(crate) async fn post_reject(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    request::Json(body): request::Json<RejectBody>,
) -> Result<Json<RunView>, Problem> {
    let found = tasks::find(&api, &caller, id, &task).await?;
    let spec = found.spec();
    check_approver(&form_of(spec)?, spec, &caller)?;
    let payload = body.reason.map_or(Value::Null, Value::String);
    let task = found.record.task.index;
    let command = Command::Answer { task, approved: false, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "is not waiting for an answer to this task").await
}

async fn settle(
    api: &Api,
    caller: &Caller,
    id: RunId,
    command: Command,
    stale: &str,
) -> Result<Json<RunView>, Problem> {
    let settled = api.app.runtime.settle(id, command).await.map_err(error::runtime)?;
    let run = runs::show(api, caller, id).await?;
    match settled {
        Settled::Applied => Ok(Json(run)),
        Settled::Stale | Settled::NoSuchRun => {
            let message = format!("run {id} {stale}");
            Err(Problem::new(StatusCode::CONFLICT, "not_waiting", message).with(json!(run)))
        }
    }
}

/// The form of an approval, and who may fill it in.
pub struct ApprovalForm(Approval);

/// A field of an approval's form.
pub struct FormField {
    /// The name that the answer uses.
    pub name: String,
    /// The type of its value.
    pub kind: InputType,
    /// Help for the person who fills it in.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub required: bool,
}

impl ApprovalForm {
    /// The form of a task; none if the task is not an approval.
    pub fn of(spec: &TaskSpec) -> Result<Option<Self>, Problem> {
        let approval = runtime::approval(spec).transpose().map_err(|error| Problem::internal(&error))?;
        Ok(approval.map(Self))
    }

    /// Its fields, by name.
    pub fn fields(&self) -> Vec<FormField> {
        let fields = self.0.fields.iter().map(|(name, field)| FormField {
            name: name.clone(),
            kind: field.kind,
            description: field.description.as_ref().map(|text| text.0.clone()),
            required: field.required,
        });
        fields.collect()
    }

    /// Whether this person may answer.
    pub fn allows(&self, person: &str) -> bool {
        self.0.allows(person)
    }
}

fn form_of(spec: &TaskSpec) -> Result<ApprovalForm, Problem> {
    ApprovalForm::of(spec)?.ok_or_else(|| {
        let message = format!("`{}` is of type {}; only approvals can be answered", spec.name, spec.kind);
        Problem::new(StatusCode::CONFLICT, "not_waiting", message)
    })
}

/// Refuses people who are not among the approvers that a task names.
fn check_approver(form: &ApprovalForm, spec: &TaskSpec, caller: &Caller) -> Result<(), Problem> {
    if form.allows(&caller.name) {
        return Ok(());
    }
    let message = format!("{} is not an approver of `{}`", caller.name, spec.name);
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message))
}

/// Refuses to mark an approval for people who are not among its approvers: marking decides it, too. A fan-out of approvals
/// counts as one.
pub(crate) fn check_may_mark(spec: &TaskSpec, caller: &Caller) -> Result<(), Problem> {
    let decided = spec.fan_out.as_ref().map_or(spec, |fan_out| &fan_out.task);
    match ApprovalForm::of(decided)? {
        Some(form) => check_approver(&form, spec, caller),
        None => Ok(()),
    }
}

/// Refuses an answer without a required field, or with an unknown one.
fn check_fields(form: &ApprovalForm, given: &Map<String, Value>) -> Result<(), Problem> {
    let problems = form.0.problems(given);
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("the answer does not match the form: {}", error::listed(&problems));
    let shown = &problems[..problems.len().min(error::MAX_PROBLEMS)];
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_answer", message).with(json!(shown)))
}
