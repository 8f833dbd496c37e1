//! `ebb types`: the task types, built-in and custom, and the workflows that use them.

use std::process::ExitCode;

use anyhow::{Result, bail};
use api::task_types::{TaskTypeList, TaskTypeView};

use super::connect;
use crate::args::{Shared, Types};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: &Types) -> Result<ExitCode> {
    let mut types: TaskTypeList = connect(shared)?.get(&["task-types"], &[]).await?;
    if let Some(name) = &arguments.name {
        let names = types.items.iter().map(|task| task.name.clone()).collect::<Vec<_>>();
        let Some(found) = types.items.into_iter().find(|task| task.name == *name) else {
            let hint = language::document::hint(name, names.iter().map(String::as_str).collect::<Vec<_>>());
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            let more = if types.truncated { "; the list of types is not complete" } else { "" };
            bail!("there is no task type `{name}`{hint}{more}");
        };
        return show(shared, &found);
    }
    if types.truncated {
        eprintln!("there are more custom types, or more workflows that use them, than one response holds");
    }
    types.items.retain(|task| !arguments.custom || task.custom);
    let none = "no custom task types: declare one in types/, use it in a workflow and run `ebb apply`";
    output::print_list(shared, &types, &types.items, none, table)?;
    Ok(ExitCode::SUCCESS)
}

fn table(types: &[TaskTypeView]) -> String {
    let row = |task: &TaskTypeView| {
        let workflows: Vec<&str> = task.workflows.iter().map(|used| used.workflow.as_str()).collect();
        vec![
            task.name.clone(),
            task.queue.clone().unwrap_or_default(),
            workflows.join(", "),
            output::first_line(task.description.as_deref().unwrap_or_default()).to_owned(),
        ]
    };
    output::table(["TYPE", "QUEUE", "USED BY", "DESCRIPTION"], types.iter().map(row))
}

fn show(shared: &Shared, task: &TaskTypeView) -> Result<ExitCode> {
    if shared.json {
        output::json(task)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(table(std::slice::from_ref(task)))?;
    for used in task.workflows.iter().filter(|used| used.outdated) {
        output::line(format!("\n{} has an earlier declaration: run `ebb apply`", used.workflow))?;
    }
    for (heading, schema) in [("settings", Some(&task.config)), ("output", task.output.as_ref())] {
        if let Some(schema) = schema {
            output::line(format!("\n{heading}"))?;
            output::json(schema)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
