# What can be counted only from what functions write. A test looks each text up in the code, so that rewording a line
# cannot silence an alert.

locals {
  log_metrics = {
    runs_ended = {
      description = "Runs that ended, by workflow and how."
      message     = "^Run .+ has ended: "
      labels      = { workflow = "EXTRACT(labels.workflow)", state = "EXTRACT(jsonPayload.state)" }
    }
    dead_letters = {
      description = "Messages that can never succeed and were kept as dead letters."
      message     = " can never succeed and was buried: "
      labels      = { service = "EXTRACT(resource.labels.service_name)" }
    }
    database_errors = {
      description = "Something was not done because the database was away or refused."
      message     = "the database is not available: |the database refused: |the database does not answer: "
      labels      = { service = "EXTRACT(resource.labels.service_name)" }
    }
    stalled_runs = {
      description = "Looks at runs that cannot go on: as they say themselves, or since they cannot be settled."
      message     = "^Found stalled |^Found at_rest |^Run .+ cannot go on: "
      labels      = {}
    }
    late_timers = {
      description = "Timers that were due and that nobody had fired."
      message     = "^Found overdue_timers "
      labels      = {}
    }
    lost_attempts = {
      description = "Attempts that were taken from workers that are dead."
      message     = "^Worker .+ is dead; "
      labels      = {}
    }
    open_breakers = {
      description = "Circuit breakers that opened, of any worker."
      message     = "^The breaker of .+ is open: "
      labels      = {}
    }
  }

  our_logs = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^ebbflow-\""
}

resource "google_logging_metric" "counted" {
  for_each = local.log_metrics

  project          = var.project_id
  name             = "ebbflow/${each.key}"
  description      = each.value.description
  filter           = "${local.our_logs} AND jsonPayload.message=~\"${each.value.message}\""
  label_extractors = each.value.labels

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    dynamic "labels" {
      for_each = each.value.labels
      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }

  depends_on = [google_project_service.api]
}
