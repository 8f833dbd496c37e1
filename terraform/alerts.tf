# Alerts. Each has a chapter of the same name in docs/src/operations/runbook.md; a test compares them.

locals {
  counted  = { for name, metric in google_logging_metric.counted : name => "metric.type=\"logging.googleapis.com/user/${metric.name}\" AND resource.type=\"cloud_run_revision\"" }
  requests = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=starts_with(\"ebbflow-\")"
  sql      = "resource.type=\"cloudsql_database\" AND resource.labels.database_id=\"${var.project_id}:${google_sql_database_instance.this.name}\""
  subscriptions_of = {
    work         = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=starts_with(\"ebbflow-execute-\")"
    dead_letters = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=ends_with(\"-dead-letters\")"
  }

  # An alert fires when the aggregated series stays above the threshold for `seconds`.
  alerts = {
    service_down = {
      severity = "CRITICAL"
      means    = "A service returns errors for most requests."
      conditions = {
        "More than half of the responses are errors" = {
          filter  = "${local.requests} AND metric.labels.response_code_class=\"5xx\"", of = local.requests
          aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", by = ["resource.labels.service_name"]
          window  = 300, above = 0.5, seconds = 300
        }
      }
    }
    database_errors = {
      severity = "CRITICAL"
      means    = "The database is unavailable, returns errors, or is almost out of connections."
      conditions = {
        "Functions cannot use the database" = {
          filter  = local.counted.database_errors, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 5, seconds = 0
        }
        "90 % of its connections are open" = {
          filter  = "metric.type=\"cloudsql.googleapis.com/database/postgresql/num_backends\" AND ${local.sql}", of = null
          aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = []
          window  = 60, above = floor(0.9 * var.database.max_connections), seconds = 300
        }
      }
    }
    failure_rate = {
      severity = "ERROR"
      means    = "More than 20 % of a workflow's runs that ended within ten minutes failed."
      conditions = {
        "More than 20 % of runs fail" = {
          filter  = "${local.counted.runs_ended} AND metric.labels.state=\"failed\"", of = local.counted.runs_ended
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = ["metric.labels.workflow"]
          window  = 600, above = 0.2, seconds = 0
        }
      }
    }
    stalled_run = {
      severity = "ERROR"
      means    = "A run has been unable to continue for half an hour."
      conditions = {
        "Unable to continue for 30 minutes" = {
          filter  = local.counted.stalled_runs, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 600, above = 0, seconds = 1800
        }
      }
    }
    queue_depth = {
      severity = "WARNING"
      means    = "More than 500 tasks in a queue wait for a worker."
      conditions = {
        "More than 500 wait" = {
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscriptions_of.work}", of = null
          aligner = "ALIGN_MIN", reducer = "REDUCE_SUM", by = ["resource.labels.subscription_id"]
          window  = 60, above = 500, seconds = 300
        }
      }
    }
    queue_depth_critical = {
      severity = "CRITICAL"
      means    = "More than 1,000 tasks in a queue wait for a worker."
      conditions = {
        "More than 1,000 wait" = {
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscriptions_of.work}", of = null
          aligner = "ALIGN_MIN", reducer = "REDUCE_SUM", by = ["resource.labels.subscription_id"]
          window  = 60, above = 1000, seconds = 300
        }
      }
    }
    timer_lateness = {
      severity = "ERROR"
      means    = "Timers fire more than a minute late, or the sweep does not run."
      conditions = {
        "Timers are overdue" = {
          filter  = local.counted.late_timers, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 600, above = 0, seconds = 0
        }
      }
    }
    dead_letters = {
      severity = "WARNING"
      means    = "A message was dead-lettered, or a dead letter waits to be stored."
      conditions = {
        "A message was dead-lettered" = {
          filter  = local.counted.dead_letters, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 0, seconds = 0
        }
        "Dead letters wait to be stored" = {
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscriptions_of.dead_letters}", of = null
          aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.labels.subscription_id"]
          window  = 60, above = 600, seconds = 300
        }
      }
    }
    breaker_open = {
      severity = "WARNING"
      means    = "Calls to a host fail so often that a breaker blocks them for a while."
      conditions = {
        "A breaker opened" = {
          filter  = local.counted.open_breakers, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 0, seconds = 0
        }
      }
    }
  }
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  project      = var.project_id
  display_name = each.value
  type         = "email"
  labels       = { email_address = each.value }

  depends_on = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "alert" {
  for_each = local.alerts

  project               = var.project_id
  display_name          = "Ebbflow: ${replace(each.key, "_", " ")}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = [for channel in google_monitoring_notification_channel.email : channel.id]
  user_labels           = { app = "ebbflow" }

  dynamic "conditions" {
    for_each = each.value.conditions
    content {
      display_name = conditions.key
      condition_threshold {
        filter             = conditions.value.filter
        denominator_filter = conditions.value.of
        comparison         = "COMPARISON_GT"
        threshold_value    = conditions.value.above
        duration           = "${conditions.value.seconds}s"

        aggregations {
          alignment_period     = "${conditions.value.window}s"
          per_series_aligner   = conditions.value.aligner
          cross_series_reducer = conditions.value.reducer
          group_by_fields      = conditions.value.by
        }
        dynamic "denominator_aggregations" {
          for_each = conditions.value.of == null ? [] : [conditions.value]
          content {
            alignment_period     = "${denominator_aggregations.value.window}s"
            per_series_aligner   = denominator_aggregations.value.aligner
            cross_series_reducer = denominator_aggregations.value.reducer
            group_by_fields      = denominator_aggregations.value.by
          }
        }
        trigger {
          count = 1
        }
      }
    }
  }

  # A sweep that never answers logs nothing.
  dynamic "conditions" {
    for_each = each.key == "timer_lateness" ? ["No response from the sweep for five minutes"] : []
    content {
      display_name = conditions.value
      condition_absent {
        filter   = "${local.requests} AND resource.labels.service_name=\"ebbflow-sweep\" AND metric.labels.response_code_class=\"2xx\""
        duration = "300s"
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = "ALIGN_RATE"
          cross_series_reducer = "REDUCE_SUM"
        }
      }
    }
  }

  # Only the console is probed: the other functions are not up while idle.
  dynamic "conditions" {
    for_each = each.key == "service_down" && var.api != null ? ["The console does not answer"] : []
    content {
      display_name = conditions.value
      condition_threshold {
        filter          = "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\" AND metric.labels.check_id=\"${google_monitoring_uptime_check_config.console[0].uptime_check_id}\""
        comparison      = "COMPARISON_GT"
        threshold_value = 1
        duration        = "0s"
        aggregations {
          # Longer than the period between two checks.
          alignment_period     = "1200s"
          per_series_aligner   = "ALIGN_NEXT_OLDER"
          cross_series_reducer = "REDUCE_COUNT_FALSE"
          group_by_fields      = ["resource.labels.host"]
        }
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    subject   = each.value.means
    content   = "${each.value.means}\n\nWhat to do: docs/src/operations/runbook.md, “${local.chapters[each.key]}”."
    dynamic "links" {
      for_each = var.runbook_url == null ? [] : ["${var.runbook_url}#${local.chapters[each.key]}"]
      content {
        display_name = "Runbook"
        url          = links.value
      }
    }
  }
}

locals {
  # Alerts with two severities share a chapter.
  chapters = { for name in keys(local.alerts) : name => replace(trimsuffix(name, "_critical"), "_", "-") }
}

resource "google_monitoring_uptime_check_config" "console" {
  count = var.api == null ? 0 : 1

  project      = var.project_id
  display_name = "Ebbflow: console"
  timeout      = "10s"
  # More frequent checks would keep an instance up.
  period = "900s"

  http_check {
    path         = "/livez"
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }

  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project_id
      host       = trimprefix(google_cloud_run_v2_service.function["console"].uri, "https://")
    }
  }

  depends_on = [google_project_service.api]
}
