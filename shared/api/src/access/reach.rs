//! The resources that a definition uses beyond its own workflow.
//!
//! A run acts as its workflow, not as the person who starts it. So a caller who makes a version active needs the permissions
//! for every workflow that it starts, waits for or follows, and for all workflows of the tenant if it has a global task.

use auth::Permission::{self, Follow, Read, Start};
use host::Problem;
use model::{Call, Callback, TaskKind, TaskSpec, TriggerOn, Workflow};
use serde_json::Value;

use super::forbidden;
use crate::Caller;

/// Another workflow that a definition names.
struct Target<'a> {
    /// The part of the definition that names it.
    by: String,
    /// The other workflow's name, or a template of it.
    workflow: &'a str,
    /// The way in which the definition uses it.
    needs: &'static [Permission],
}

/// Refuses definitions that name workflows for which the caller lacks a permission.
pub(crate) fn check_reach<'a>(
    caller: &Caller,
    workflows: impl IntoIterator<Item = &'a Workflow>,
) -> Result<(), Problem> {
    for workflow in workflows {
        for target in targets(workflow) {
            for permission in target.needs {
                check(caller, *permission, &target)
                    .map_err(|why| forbidden(format!("{} of `{}` {why}", target.by, workflow.name)))?;
            }
        }
        // What one run makes of it, runs of any workflow may be given.
        for task in workflow.tasks.iter().filter(|task| task.global.is_some()) {
            for permission in [Start, Read] {
                let shares = |denied| {
                    let (task, workflow) = (&task.name, &workflow.name);
                    forbidden(format!("task `{task}` of `{workflow}` is global, for all workflows: {denied}"))
                };
                caller.check_tenant(permission).map_err(shares)?;
            }
        }
    }
    Ok(())
}

fn check(caller: &Caller, permission: Permission, target: &Target<'_>) -> Result<(), String> {
    let name = target.workflow;
    // A template can become any name.
    if name.contains("{{") {
        return caller
            .check_tenant(permission)
            .map_err(|denied| format!("names a workflow by a template: {denied}"));
    }
    match caller.may(permission, name) {
        true => Ok(()),
        false => {
            let tenant = Some(caller.tenant_name.as_str());
            let about = auth::WorkflowScope::One(name);
            let why = auth::may(&caller.grants, permission, tenant, about).err().unwrap_or_default();
            Err(format!("names workflow `{name}`: {why}"))
        }
    }
}

fn targets(workflow: &Workflow) -> Vec<Target<'_>> {
    let mut found = called(&workflow.callbacks, "a callback".to_owned());
    for task in &workflow.tasks {
        found.extend(targets_of_task(task, &task.name));
    }
    for trigger in &workflow.triggers {
        let by = format!("trigger `{}`", trigger.name);
        match &trigger.on {
            TriggerOn::Workflows { workflows, .. } => {
                let target = |workflow| Target { by: by.clone(), workflow, needs: &[Follow] };
                found.extend(workflows.iter().map(|workflow| target(workflow.as_str())));
            }
            TriggerOn::Sensor { config, .. } => found.extend(followed(config, by)),
            TriggerOn::Event { .. } | TriggerOn::Webhook { .. } => {}
        }
    }
    found
}

/// The resources that a task names, under the name of the task that people see.
fn targets_of_task<'a>(task: &'a TaskSpec, name: &str) -> Vec<Target<'a>> {
    let by = format!("task `{name}`");
    let mut found = called(&task.callbacks, format!("a callback of {by}"));
    match task.kind {
        TaskKind::Workflow => {
            // It may wait for the run, and then has its outputs.
            let workflow = task.config["workflow"].as_str();
            found.extend(workflow.map(|workflow| Target { by, workflow, needs: &[Start, Read] }));
        }
        TaskKind::Sensor => found.extend(followed(&task.config, by)),
        TaskKind::Noop
        | TaskKind::Echo
        | TaskKind::Fail
        | TaskKind::Flaky
        | TaskKind::Sleep
        | TaskKind::Switch
        | TaskKind::Transform
        | TaskKind::WaitForSignal
        | TaskKind::Approval
        | TaskKind::FanOut
        | TaskKind::FanIn
        | TaskKind::Http
        | TaskKind::Bash
        | TaskKind::Python
        | TaskKind::Custom(_) => {}
    }
    if let Some(fan_out) = &task.fan_out {
        found.extend(targets_of_task(&fan_out.task, name));
    }
    found
}

fn called(callbacks: &[Callback], by: String) -> Vec<Target<'_>> {
    let named = callbacks.iter().filter_map(|callback| match &callback.call {
        Call::Workflow { workflow, .. } => Some(workflow.as_str()),
        Call::Webhook { .. } | Call::Message { .. } => None,
    });
    named.map(|workflow| Target { by: by.clone(), workflow, needs: &[Start] }).collect()
}

/// The workflow whose run a sensor waits for.
fn followed(config: &Value, by: String) -> Option<Target<'_>> {
    let workflow = config.pointer("/run/workflow").or_else(|| config.pointer("/workflow"))?.as_str()?;
    Some(Target { by, workflow, needs: &[Follow] })
}
