# The bucket for archived runs, if there is one.

resource "google_storage_bucket" "archive" {
  for_each = var.archive == null ? {} : { this = var.archive }

  project                     = var.project_id
  name                        = coalesce(each.value.bucket, "${var.project_id}-${var.name}-archive")
  location                    = var.region
  storage_class               = each.value.storage_class
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false
  labels                      = { app = "ebbflow", installation = var.name }

  dynamic "lifecycle_rule" {
    for_each = each.value.keep_days == null ? [] : [each.value.keep_days]
    content {
      action {
        type = "Delete"
      }
      condition {
        age = lifecycle_rule.value
      }
    }
  }

  depends_on = [google_project_service.api]
}

# The sweep may add objects. It can neither read, overwrite nor delete them.
resource "google_storage_bucket_iam_member" "sweep_archives" {
  for_each = var.archive == null ? {} : { this = google_storage_bucket.archive["this"] }

  bucket = each.value.name
  role   = "roles/storage.objectCreator"
  member = google_service_account.function["sweep"].member
}
