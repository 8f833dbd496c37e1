# Metrics counted from log lines, by the field `event` of the line. A test compares the events with those the code writes.

locals {
  log_metrics = {
    runs_ended = {
      description = "Runs that ended, by workflow and state."
      events      = ["run_ended"]
      labels      = { workflow = "EXTRACT(labels.workflow)", state = "EXTRACT(jsonPayload.state)" }
    }
    task_failures = {
      description = "Tasks that failed after all their retries, by type."
      events      = ["task_failed"]
      labels      = { kind = "EXTRACT(jsonPayload.kind)" }
    }
    dead_letters = {
      description = "Messages that can never succeed and were kept as dead letters."
      events      = ["dead_lettered"]
      labels      = { service = "EXTRACT(resource.labels.service_name)" }
    }
    quota_refusals = {
      description = "Schedules, backfills and sensors that wait because the quota of their tenant is used up."
      events      = ["quota_reached"]
      labels      = {}
    }
    unusable_webhooks = {
      description = "Requests to webhooks that were rejected because the trigger or its secret cannot be read."
      events      = ["webhook_unusable"]
      labels      = {}
    }
    database_errors = {
      description = "Calls that failed because the database was unavailable or returned an error."
      events      = ["database_error"]
      labels      = { service = "EXTRACT(resource.labels.service_name)" }
    }
    stalled_runs = {
      description = "Inspections that found a run that cannot continue, and attempts to settle one that failed."
      events      = ["stalled", "at_rest", "unsettled"]
      labels      = {}
    }
    late_timers = {
      description = "Inspections that found timers overdue."
      events      = ["overdue_timers"]
      labels      = {}
    }
    untaken_attempts = {
      description = "Attempts that no worker took within their dispatch timeout."
      events      = ["attempt_not_taken"]
      labels      = {}
    }
    waiting_attempts = {
      description = "Inspections that found attempts of a run that have waited for a worker for two minutes."
      events      = ["unclaimed_tasks"]
      labels      = {}
    }
    lost_attempts = {
      description = "Attempts taken from dead workers."
      events      = ["attempt_lost"]
      labels      = {}
    }
    open_breakers = {
      description = "Circuit breakers of tasks and hosts that opened."
      events      = ["breaker_opened"]
      labels      = {}
    }
  }

  # The names of all services, and of these alone: the name of another installation may begin like this one's.
  service_names = "${var.name}-(${join("|", keys(local.functions))})"
  our_logs      = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^${local.service_names}$\""
}

resource "google_logging_metric" "counted" {
  for_each = local.log_metrics

  project          = var.project_id
  name             = "${var.name}/${each.key}"
  description      = each.value.description
  filter           = "${local.our_logs} AND jsonPayload.event=(${join(" OR ", formatlist("\"%s\"", each.value.events))})"
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

# Cloud Run logs every request. Those that Pub/Sub and the scheduler send, and that succeed, say nothing that the functions'
# own lines do not, and would be most of the bill of a busy installation.
resource "google_logging_project_exclusion" "internal_requests" {
  project     = var.project_id
  name        = "${var.name}-internal-requests"
  description = "Successful requests to Ebbflow's internal services."
  filter      = "logName=\"projects/${var.project_id}/logs/run.googleapis.com%2Frequests\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^${var.name}-(${join("|", [for name, function in local.functions : name if !contains(["trigger", "console"], name)])})$\" AND httpRequest.status<300"

  depends_on = [google_project_service.api]
}
