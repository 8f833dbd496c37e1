output "urls" {
  description = "The address of each service."
  value       = { for name, service in google_cloud_run_v2_service.function : name => service.uri }
}

output "console_url" {
  description = "Where people find the console, and programs the API below /api/v1; nothing where `api` is not set."
  value       = var.api == null ? null : local.console_url
}

output "image_repository" {
  description = "Where images are pushed to."
  value       = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
}

output "topics" {
  description = "The topics by name."
  value       = { for name, topic in google_pubsub_topic.topic : name => topic.id }
}

output "database" {
  description = "The database's connection name, for the Cloud SQL Auth Proxy."
  value       = google_sql_database_instance.this.connection_name
}

output "accounts" {
  description = "The service account of each service, for grants of your own: what tasks may do, the account of their queue may."
  value       = { for name, account in google_service_account.function : name => account.email }
}

output "deployer" {
  description = "The service account that cloudbuild.yaml runs as."
  value       = google_service_account.deployer.email
}

output "migrate_command" {
  description = "Brings the database up to date."
  value       = "gcloud run jobs execute ${google_cloud_run_v2_job.migrate.name} --project=${var.project_id} --region=${var.region} --wait"
}

output "dashboard_url" {
  description = "The dashboard."
  value       = "https://console.cloud.google.com/monitoring/dashboards/builder/${element(split("/", google_monitoring_dashboard.this.id), length(split("/", google_monitoring_dashboard.this.id)) - 1)}?project=${var.project_id}"
}

output "push" {
  description = "As whom and for whom a push subscription of your own, to the trigger's address and /push, must have its tokens signed."
  value       = { service_account_email = google_service_account.invoker.email, audience = local.audiences.trigger }
}

output "archive" {
  description = "The bucket to which runs go before they are deleted; nothing where `archive` is not set."
  value       = one([for bucket in google_storage_bucket.archive : bucket.name])
}
