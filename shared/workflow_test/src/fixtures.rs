//! The workflows a test needs, and the tasks that names in its file refer to.

use language::document::{Position, Report, hint};
use language::{Definition, TypeChecks, template};
use model::{TaskKind, TaskSpec, Workflow};

/// The workflow under test, and the workflows that its tasks start.
#[derive(Clone, Debug)]
pub(crate) struct Fixtures(pub(crate) Vec<Definition>);

impl Fixtures {
    /// The workflow and, transitively, those of `all` that its tasks start.
    pub(crate) fn of(definition: &Definition, all: &[Definition]) -> Self {
        let mut found = vec![definition.clone()];
        let mut next = 0;
        while let Some(member) = found.get(next) {
            let started: Vec<&TaskSpec> =
                member.workflow.tasks.iter().filter(|spec| starts_run(spec)).collect();
            // A name that is only known at run time may be any workflow.
            let any = started.iter().any(|spec| name_of_run(spec).is_none());
            let named = |name: &str| started.iter().any(|spec| name_of_run(spec) == Some(name));
            let new = all.iter().filter(|other| any || named(&other.workflow.name));
            let new =
                new.filter(|other| found.iter().all(|member| member.workflow.name != other.workflow.name));
            let new: Vec<Definition> = new.cloned().collect();
            found.extend(new);
            next += 1;
        }
        // Stubs stand for workers as well as for services, so what workers would lease is dispatched like the rest.
        found.iter_mut().for_each(|member| member.workflow.push_all());
        Self(found)
    }

    /// The workflow under test.
    pub(crate) fn workflow(&self) -> &Workflow {
        &self.0[0].workflow
    }

    /// The schemas of a task's type, if it is a custom one.
    pub(crate) fn custom_type(&self, kind: &TaskKind) -> Option<TypeChecks> {
        let mut declared = self.0.iter().filter_map(|member| member.workflow.custom_type(kind));
        declared.next().and_then(|(name, custom)| TypeChecks::compile(name, custom).ok())
    }

    /// The definition a name refers to: a task; a fan-out or one of its children, such as `split__3`; or, after a slash, a
    /// task of the run that a task starts. Reports a name that refers to nothing.
    pub(crate) fn find(&self, name: &str, at: &Position, report: &mut Report<'_>) -> Option<&TaskSpec> {
        let mut workflow = self.workflow();
        let (path, last) = name.rsplit_once('/').map_or((None, name), |(path, last)| (Some(path), last));
        for step in path.into_iter().flat_map(|path| path.split('/')) {
            let spec = task(step, at, workflow, report)?;
            if !starts_run(spec) {
                let message = format!("`{step}` does not start a run, so `{name}` is not a task");
                report.add(at, message, None);
                return None;
            }
            let started = name_of_run(spec)?;
            let Some(found) = self.0.iter().find(|member| member.workflow.name == started) else {
                let hint = Some(format!("give `{step}` a stub"));
                report.add(
                    at,
                    format!("`{step}` starts the workflow `{started}`, which is not in this folder"),
                    hint,
                );
                return None;
            };
            workflow = &found.workflow;
        }
        task(last, at, workflow, report)
    }
}

/// The task of that name; for a child of a fan-out, the fan-out.
fn task<'w>(
    name: &str,
    at: &Position,
    workflow: &'w Workflow,
    report: &mut Report<'_>,
) -> Option<&'w TaskSpec> {
    let named = |name: &str| workflow.tasks.iter().find(|spec| spec.name == name);
    let child = || fan_out_of(name).and_then(named).filter(|spec| spec.fan_out.is_some());
    let found = named(name).or_else(child);
    if found.is_none() {
        let hint = hint(name, workflow.tasks.iter().map(|spec| spec.name.as_str()));
        report.add(at, format!("the workflow `{}` has no task `{name}`", workflow.name), hint);
    }
    found
}

/// The task that is executed: for a fan-out, the task of its children.
pub(crate) fn work_of(spec: &TaskSpec) -> &TaskSpec {
    spec.fan_out.as_ref().map_or(spec, |fan_out| &fan_out.task)
}

/// Whether a name in a test file refers to a task: it is the task's name, or that of its fan-out.
pub(crate) fn matches_task(name: &str, task: &str) -> bool {
    let fits = |(name, task): (&str, &str)| name == task || fan_out_of(task) == Some(name);
    name.split('/').count() == task.split('/').count() && name.split('/').zip(task.split('/')).all(fits)
}

/// The fan-out whose child would have this name: `split` of `split__3`.
fn fan_out_of(name: &str) -> Option<&str> {
    let (fan_out, number) = name.rsplit_once("__")?;
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(fan_out)
}

fn starts_run(spec: &TaskSpec) -> bool {
    work_of(spec).kind.starts_run()
}

/// The workflow whose run a task starts, if that is known before it does.
fn name_of_run(spec: &TaskSpec) -> Option<&str> {
    let name = &work_of(spec).config["workflow"];
    name.as_str().filter(|_| template::is_plain(name))
}
