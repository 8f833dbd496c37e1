# A job wakes the sweep every minute, which is the only activity while idle.

resource "google_cloud_scheduler_job" "sweep" {
  project     = var.project_id
  region      = var.region
  name        = "${var.name}-sweep"
  description = "Wakes Ebbflow's sweep."
  schedule    = "* * * * *"
  time_zone   = "Etc/UTC"
  # A tick takes about 65 s at most and so overlaps the next one, which starts when this one ends.
  attempt_deadline = "90s"

  retry_config {
    retry_count          = 1
    min_backoff_duration = "5s"
  }

  http_target {
    http_method = "POST"
    uri         = "${google_cloud_run_v2_service.function["sweep"].uri}/sweep"
    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = local.audiences.sweep
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker]
}
