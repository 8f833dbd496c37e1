//! The database instance on Cloud SQL, as its admin API describes it.

mod checks;
mod restore;

use anyhow::{Context, Result};
use google_cloud_auth::credentials::anonymous;
use google_cloud_sql_v1::client::{SqlBackupRunsService, SqlInstancesService, SqlOperationsService};
use google_cloud_sql_v1::model::{BackupRun, DatabaseInstance};

pub use checks::checks;
pub use restore::{Restored, restore};

use crate::args::CloudArgs;

/// How many of the last backups are read.
const BACKUPS: i32 = 10;

/// Clients of the admin API, and the instance they are about.
pub struct Cloud {
    project: String,
    instance: String,
    instances: SqlInstancesService,
    backups: SqlBackupRunsService,
    operations: SqlOperationsService,
}

impl Cloud {
    /// Clients of Google's servers with the credentials of the environment, or without any of another server with the same API.
    pub async fn connect(args: &CloudArgs) -> Result<Self> {
        let project =
            args.project.clone().context("name the Google Cloud project: set --project or EBB_PROJECT")?;
        let (mut instances, mut backups, mut operations) = (
            SqlInstancesService::builder(),
            SqlBackupRunsService::builder(),
            SqlOperationsService::builder(),
        );
        if let Some(endpoint) = &args.sql_endpoint {
            let nobody = || anonymous::Builder::new().build();
            instances = instances.with_endpoint(endpoint).with_credentials(nobody());
            backups = backups.with_endpoint(endpoint).with_credentials(nobody());
            operations = operations.with_endpoint(endpoint).with_credentials(nobody());
        }
        let credentials = "cannot use Google's credentials: run `gcloud auth application-default login`";
        Ok(Self {
            project,
            instance: args.instance.clone(),
            instances: instances.build().await.context(credentials)?,
            backups: backups.build().await.context(credentials)?,
            operations: operations.build().await.context(credentials)?,
        })
    }

    /// The instance of the database.
    pub async fn instance(&self) -> Result<DatabaseInstance> {
        self.read(&self.instance).await
    }

    async fn read(&self, name: &str) -> Result<DatabaseInstance> {
        let read = self.instances.get().set_project(&self.project).set_instance(name).send().await;
        read.with_context(|| format!("cannot read the instance `{name}` of project `{}`", self.project))
    }

    /// The newest backups of the instance.
    pub async fn backups(&self) -> Result<Vec<BackupRun>> {
        let list = self.backups.list().set_project(&self.project).set_instance(&self.instance);
        let listed = list.set_max_results(BACKUPS).send().await;
        Ok(listed.with_context(|| format!("cannot list the backups of `{}`", self.instance))?.items)
    }
}

#[cfg(test)]
mod tests;
