//! `ebb restore`: clones the database as it was at a moment, and says what to point where.

use std::fmt;

use anyhow::{Context, Result, bail};
use chrono::{SecondsFormat, TimeDelta};
use google_cloud_sql_v1::model::database_instance::SqlInstanceState;
use google_cloud_sql_v1::model::operation::SqlOperationStatus;
use google_cloud_sql_v1::model::{CloneContext, DatabaseInstance, InstancesCloneRequest, Operation};
use google_cloud_wkt::Timestamp;
use model::{Clock, Instant};
use serde::Serialize;

use super::Cloud;
use super::checks::window_days;

/// How often to ask whether the clone is there, which takes minutes.
const POLL_INTERVAL: TimeDelta = TimeDelta::seconds(2);

/// Moves the users to the clone, which has them all: that of the migration, those of functions that log in through IAM, and people.
const USERS: &str = r#"users=$(terraform state list | grep 'google_sql_user\.')
for user in $users; do
  name=$(terraform state show -no-color "$user" | sed -n 's/^ *name *= "\(.*\)"$/\1/p')
  terraform state rm "$user" && terraform import "$user" "INSTANCE/$name"
done"#;

/// A database as it was at an instant.
#[derive(Serialize, Debug)]
pub struct Restored {
    /// The project of both instances.
    pub project: String,
    /// The instance that was cloned. It is as it was.
    pub source: String,
    /// The name of the clone.
    pub instance: String,
    /// The moment of which it is a copy.
    pub to: Instant,
    /// The address in `/cloudsql` and of connectors.
    pub connection_name: String,
}

/// Clones the instance as it was at `to`, and waits for the clone.
pub async fn restore(cloud: &Cloud, to: Instant, name: Option<&str>, clock: &dyn Clock) -> Result<Restored> {
    let source = cloud.instance().await?;
    check(&source, to, clock.now())?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("{}-{}", source.name, to.format("%Y%m%d-%H%M%S")),
    };
    let moment = Timestamp::clamp(to.timestamp(), to.timestamp_subsec_nanos().cast_signed());
    let context = CloneContext::new().set_destination_instance_name(&name).set_point_in_time(moment);
    let clone = cloud.instances.clone().set_project(&cloud.project).set_instance(&cloud.instance);
    let started = clone.set_body(InstancesCloneRequest::new().set_clone_context(context)).send().await;
    let started = started.with_context(|| format!("cannot clone `{}` to `{name}`", cloud.instance))?;
    wait(cloud, started, clock).await?;
    let restored = cloud.read(&name).await?;
    if restored.state != SqlInstanceState::Runnable {
        bail!("`{name}` is {}: see `gcloud sql operations list --instance={name}`", restored.state);
    }
    Ok(Restored {
        project: cloud.project.clone(),
        source: source.name,
        instance: name,
        to,
        connection_name: restored.connection_name,
    })
}

/// Rejects a moment to which the instance cannot be restored, before anything is created.
fn check(source: &DatabaseInstance, to: Instant, now: Instant) -> Result<()> {
    let configured = source.settings.clone().unwrap_or_default().backup_configuration.unwrap_or_default();
    if !configured.point_in_time_recovery_enabled.unwrap_or(false) {
        bail!(
            "`{}` has no point-in-time recovery: restore a backup instead (`gcloud sql backups list`)",
            source.name
        );
    }
    let earliest = now - TimeDelta::days(window_days(&configured));
    if to >= now || to < earliest {
        let earliest = earliest.to_rfc3339_opts(SecondsFormat::Secs, true);
        bail!("`--to` must be in the past and not before {earliest}: transaction logs are kept from then on");
    }
    Ok(())
}

async fn wait(cloud: &Cloud, mut operation: Operation, clock: &dyn Clock) -> Result<()> {
    while operation.status != SqlOperationStatus::Done {
        clock.wait_until(clock.now() + POLL_INTERVAL).await;
        let get = cloud.operations.get().set_project(&cloud.project).set_operation(&operation.name);
        operation =
            get.send().await.with_context(|| format!("cannot read the operation `{}`", operation.name))?;
    }
    let errors = operation.error.map(|error| error.errors).unwrap_or_default();
    if errors.is_empty() {
        return Ok(());
    }
    let errors = errors.iter().map(|error| format!("{}: {}", error.code, error.message));
    bail!("the clone failed: {}", errors.collect::<Vec<_>>().join("; "))
}

/// What is there, and what to do next.
impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, source, instance, to, connection_name } = self;
        let module = "module.ebbflow.google_sql";
        let to = to.to_rfc3339_opts(SecondsFormat::Secs, true);
        writeln!(
            f,
            "`{instance}` is `{source}` as of {to}. It is at {connection_name}. Nothing uses it yet.\n"
        )?;
        writeln!(f, "To move the installation to it:")?;
        writeln!(f, "  terraform state rm {module}_database_instance.this {module}_database.this")?;
        writeln!(
            f,
            "  terraform import {module}_database_instance.this projects/{project}/instances/{instance}"
        )?;
        writeln!(
            f,
            "  terraform import {module}_database.this projects/{project}/instances/{instance}/databases/ebbflow"
        )?;
        for line in USERS.lines() {
            writeln!(f, "  {}", line.replace("INSTANCE", &format!("{project}/{instance}")))?;
        }
        writeln!(
            f,
            "  set database.instance = \"{instance}\", raise database.password_version by one, and apply"
        )?;
        writeln!(f, "  run the command in terraform's output `migrate_command`")?;
        writeln!(f, "  ebb doctor --cloud --project {project} --instance {instance}\n")?;
        // A clone is as protected as its original.
        writeln!(f, "To give it up:")?;
        writeln!(f, "  gcloud sql instances patch {instance} --no-deletion-protection --project={project}")?;
        write!(f, "  gcloud sql instances delete {instance} --project={project}")
    }
}
