output "urls" {
  description = "The address of each service."
  value       = { for name, service in google_cloud_run_v2_service.function : name => service.uri }
}

output "console_url" {
  description = "The address of the console for people; null if `api` is not set."
  value       = var.api == null ? null : local.console_url
}

output "api_url" {
  description = "The address of the API and of webhooks, below /api/v1, for `EBB_URL`; null if `api` is not set."
  value       = var.api == null ? null : local.api_url
}

output "front_address" {
  description = "The address that the names of `domain` must resolve to; null if `domain` is not set."
  value       = one(google_compute_global_address.front[*].address)
}

output "build_command" {
  description = "The command that tests, builds, migrates and deploys, from the root of the repository."
  value       = "gcloud builds submit --project=${var.project_id} --gcs-source-staging-dir=gs://${google_storage_bucket.builds.name}/source --substitutions=_NAME=${var.name},_REGION=${var.region},_TAG=$(git rev-parse --short HEAD)"
}

output "image_repository" {
  description = "The registry to push images to."
  value       = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
}

output "topics" {
  description = "The topics, by name."
  value       = { for name, topic in google_pubsub_topic.topic : name => topic.id }
}

output "database" {
  description = "The database's connection name, for the Cloud SQL Auth Proxy."
  value       = google_sql_database_instance.this.connection_name
}

output "accounts" {
  description = "The service account of each service. Grant the account of a queue what its tasks need."
  value       = { for name, account in google_service_account.function : name => account.email }
}

output "deployer" {
  description = "The service account of cloudbuild.yaml."
  value       = google_service_account.deployer.email
}

output "migrate_command" {
  description = "The command that migrates the database."
  value       = "gcloud run jobs execute ${google_cloud_run_v2_job.migrate.name} --project=${var.project_id} --region=${var.region} --wait"
}

output "dashboard_url" {
  description = "The address of the dashboard."
  value       = "https://console.cloud.google.com/monitoring/dashboards/builder/${element(split("/", google_monitoring_dashboard.this.id), length(split("/", google_monitoring_dashboard.this.id)) - 1)}?project=${var.project_id}"
}

output "push" {
  description = "The service account and audience for the tokens of your own push subscriptions to the trigger's /push."
  value       = { service_account_email = google_service_account.invoker.email, audience = local.audiences.trigger }
}

output "archive" {
  description = "The bucket for archived runs; null if `archive` is not set."
  value       = one([for bucket in google_storage_bucket.archive : bucket.name])
}
