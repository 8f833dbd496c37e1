# What wakes the sweep. With `wake = "tick"` a job calls it every minute, which is the only activity while idle. With
# `wake = "tasks"` a Cloud Task calls it at the next due instant, and the job is a safety net that runs once an hour.

locals {
  # The other functions ask the sweep by message, so that it alone may act as the account that calls it.
  wake_environment = var.wake == "tick" ? {} : { EBB_WAKE = var.wake }
  wake_environment_of_sweep = var.wake == "tick" ? {} : {
    EBB_WAKE_QUEUE = "projects/${var.project_id}/locations/${var.region}/queues/${var.name}-wake"
    EBB_WAKE_URL   = "${local.addresses.sweep}/sweep"
  }
}

resource "google_cloud_scheduler_job" "sweep" {
  project     = var.project_id
  region      = var.region
  name        = "${var.name}-sweep"
  description = "Wakes Ebbflow's sweep."
  schedule    = var.wake == "tick" ? "* * * * *" : "0 * * * *"
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

# A task is named after its instant: requests for the same instant create one task.
resource "google_cloud_tasks_queue" "wake" {
  count = var.wake == "tick" ? 0 : 1

  project  = var.project_id
  location = var.region
  name     = "${var.name}-wake"

  rate_limits {
    max_dispatches_per_second = 10
    max_concurrent_dispatches = 2
  }

  # The next tick finds what a task failed to wake.
  retry_config {
    max_attempts = 5
    min_backoff  = "1s"
    max_backoff  = "60s"
  }

  depends_on = [google_project_service.api]
}

resource "google_cloud_tasks_queue_iam_member" "sweep_requests" {
  count = var.wake == "tick" ? 0 : 1

  project  = var.project_id
  location = var.region
  name     = google_cloud_tasks_queue.wake[0].name
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.function["sweep"].member
}

# A task carries a token of the invoker, and its creator must have the right to act as that account.
resource "google_service_account_iam_member" "sweep_requests" {
  count = var.wake == "tick" ? 0 : 1

  service_account_id = google_service_account.invoker.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.function["sweep"].member
}
