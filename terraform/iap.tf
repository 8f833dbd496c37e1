# Identity-Aware Proxy before the console: people sign in with Google, and need no client, secret or token.

locals {
  # `api.accounts` in IAM's words.
  iap_members = !var.iap ? {} : {
    for account in try(var.api.accounts, []) : account => (
      startswith(account, "@") ? "domain:${trimprefix(account, "@")}" :
      endswith(account, ".gserviceaccount.com") ? "serviceAccount:${account}" : "user:${account}"
    )
  }
  iap_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-iap.iam.gserviceaccount.com"
}

resource "google_iap_web_cloud_run_service_iam_member" "console" {
  for_each = local.iap_members

  project                = var.project_id
  location               = var.region
  cloud_run_service_name = google_cloud_run_v2_service.function["console"].name
  role                   = "roles/iap.httpsResourceAccessor"
  member                 = each.value
}

# The proxy calls the service with its own account, which `gcloud beta services identity create` creates.
resource "google_cloud_run_v2_service_iam_member" "iap" {
  count = var.iap ? 1 : 0

  project  = var.project_id
  location = var.region
  name     = google_cloud_run_v2_service.function["console"].name
  role     = "roles/run.invoker"
  member   = local.iap_agent
}
