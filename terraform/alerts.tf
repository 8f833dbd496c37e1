# Alerts. Each has a chapter of the same name in docs/src/operations/runbook.md; a test compares them.

locals {
  counted  = { for name, metric in google_logging_metric.counted : name => "metric.type=\"logging.googleapis.com/user/${metric.name}\" AND resource.type=\"cloud_run_revision\"" }
  requests = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=monitoring.regex.full_match(\"${local.service_names}\")"
  sql      = "resource.type=\"cloudsql_database\" AND resource.labels.database_id=\"${var.project_id}:${google_sql_database_instance.this.name}\""
  # By their whole names, without the installation's: the name of another one may begin like this one's.
  subscription_names = {
    work         = [for queue in keys(local.queues) : "execute-${queue}"]
    dead_letters = [for topic in local.topics : "${trimprefix(topic, "${var.name}-")}-dead-letters"]
    events       = length(var.event_topics) == 0 ? [] : ["events-.+"]
    push         = keys(local.subscriptions)
  }
  subscriptions_of = { for group, names in merge(local.subscription_names, { any = flatten(values(local.subscription_names)) }) :
    group => "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=monitoring.regex.full_match(\"${var.name}-(${join("|", distinct(names))})\")"
  }

  # Log-based metrics as PromQL calls them.
  promql = { for name in keys(local.log_metrics) : name => "logging_googleapis_com:user_${replace(var.name, "-", "_")}_${name}" }
  # Tasks that workers hold are unacknowledged, but do not wait.
  in_progress = max([for size in local.queues : size.max_instances * size.concurrency]...)
  # The attempts of this installation, as functions report them.
  attempts = { for part in ["bucket", "count"] : part => "ebbflow_attempt_seconds_${part}{cluster=\"${var.name}\"}" }
  # Requests of each service within five minutes.
  promql_requests = { for part, only in { all = "", errors = ", response_code_class=\"5xx\"" } :
    part => "sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"${local.service_names}\"${only}}[5m]))"
  }
  # A stopped database keeps the API from responding, and each check would start an instance that waits for it.
  api_is_probed = var.api != null && var.database_hours == null
  # PromQL compares whole values.
  execute_names = "${var.name}-(${join("|", local.subscription_names.work)})"
  # Alerts on metrics that only exist in Cloud Monitoring if functions send theirs to Google.
  alerts_on_metrics = toset(try(var.otlp.google, false) ? [] : ["slow_tasks"])

  # An alert fires when the aggregated series stays above the threshold for `seconds`, or when a query returns anything.
  alerts = {
    service_down = {
      severity   = "CRITICAL"
      means      = "A service returns errors for most requests, of at least five within five minutes."
      conditions = {}
      # One request that fails by itself, at night, is no reason to wake anybody.
      queries = {
        "More than half of the responses are errors" = "${local.promql_requests.errors} / ${local.promql_requests.all} > 0.5 and ${local.promql_requests.all} >= 5"
      }
      seconds = 300
    }
    database_errors = {
      severity = "CRITICAL"
      means    = "The database is unavailable, returns errors, or is almost out of connections."
      conditions = {
        "Functions cannot use the database" = {
          filter  = local.counted.database_errors
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 5, seconds = 0
        }
        "90 % of its connections are open" = {
          filter  = "metric.type=\"cloudsql.googleapis.com/database/postgresql/num_backends\" AND ${local.sql}"
          aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = []
          window  = 60, above = floor(0.9 * var.database.max_connections), seconds = 300
        }
      }
    }
    failure_rate = {
      severity   = "ERROR"
      means      = "More than 20 % of a workflow's runs that ended within ten minutes failed, of at least five."
      conditions = {}
      queries = {
        "More than 20 % of runs fail" = "sum by (workflow) (increase(${local.promql.runs_ended}{monitored_resource=\"cloud_run_revision\", state=\"failed\"}[10m])) / sum by (workflow) (increase(${local.promql.runs_ended}{monitored_resource=\"cloud_run_revision\"}[10m])) > 0.2 and sum by (workflow) (increase(${local.promql.runs_ended}{monitored_resource=\"cloud_run_revision\"}[10m])) >= 5"
      }
    }
    task_failures = {
      severity = "WARNING"
      means    = "More than 20 tasks of one type failed within ten minutes, after all their retries."
      conditions = {
        "More than 20 tasks fail" = {
          filter  = local.counted.task_failures
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = ["metric.labels.kind"]
          window  = 600, above = 20, seconds = 0
        }
      }
    }
    slow_tasks = {
      severity   = "WARNING"
      means      = "The slowest attempts of a task type take more than twice as long as on the day before."
      conditions = {}
      queries = {
        "p99 is above twice the usual" = "histogram_quantile(0.99, sum by (le, kind) (rate(${local.attempts.bucket}[30m]))) > 2 * histogram_quantile(0.99, sum by (le, kind) (rate(${local.attempts.bucket}[1d] offset 30m))) and sum by (kind) (increase(${local.attempts.count}[30m])) >= 20"
      }
    }
    stalled_run = {
      severity = "ERROR"
      means    = "A run has been unable to continue for half an hour."
      conditions = {
        "Unable to continue for 30 minutes" = {
          filter  = local.counted.stalled_runs
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
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscriptions_of.work}"
          aligner = "ALIGN_MIN", reducer = "REDUCE_SUM", by = ["resource.labels.subscription_id"]
          window  = 60, above = 500 + local.in_progress, seconds = 300
        }
      }
    }
    queue_depth_critical = {
      severity = "CRITICAL"
      means    = "More than 1,000 tasks in a queue wait for a worker."
      conditions = {
        "More than 1,000 wait" = {
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscriptions_of.work}"
          aligner = "ALIGN_MIN", reducer = "REDUCE_SUM", by = ["resource.labels.subscription_id"]
          window  = 60, above = 1000 + local.in_progress, seconds = 300
        }
      }
    }
    workers_missing = {
      severity   = "CRITICAL"
      means      = "A task has waited for a quarter of an hour, and the service of its queue has completed none meanwhile."
      conditions = {}
      # A quarter of an hour is longer than the longest attempt, whose message counts while it runs. A queue whose service completes
      # tasks is merely long. The subscription is called like the service that it pushes to.
      queries = {
        "A task waits, and none is completed, for 15 minutes" = "max by (subscription_id) (pubsub_googleapis_com:subscription_oldest_unacked_message_age{monitored_resource=\"pubsub_subscription\", subscription_id=~\"${local.execute_names}\"}) > 900 unless on (subscription_id) label_replace(sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"${local.execute_names}\", response_code_class=\"2xx\"}[15m])) > 0, \"subscription_id\", \"$1\", \"service_name\", \"(.+)\")"
      }
    }
    backlog = {
      severity = "WARNING"
      means    = "For half an hour, there have been attempts that wait for a worker for minutes."
      # Also of pools, which have no subscription.
      conditions = {
        "Attempts wait for 30 minutes" = {
          filter  = local.counted.waiting_attempts, of = null
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 600, above = 0, seconds = 1800
        }
      }
    }
    too_many_requests = {
      severity = "WARNING"
      means    = "Cloud Run rejects requests because a service has no instance free."
      conditions = {
        "More than 10 requests were rejected" = {
          filter  = "${local.requests} AND metric.labels.response_code=\"429\""
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = ["resource.labels.service_name"]
          window  = 300, above = 10, seconds = 0
        }
      }
    }
    database_disk = {
      severity = "ERROR"
      means    = "The database's disk is 85 % full and cannot grow fast enough, or not at all."
      conditions = {
        "85 % of the disk is used" = {
          filter  = "metric.type=\"cloudsql.googleapis.com/database/disk/utilization\" AND ${local.sql}"
          aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = []
          window  = 300, above = 0.85, seconds = 1800
        }
      }
    }
    database_cpu = {
      severity = "WARNING"
      means    = "The database's processors have been 90 % busy for a quarter of an hour."
      conditions = {
        "90 % of the processors are busy" = {
          filter  = "metric.type=\"cloudsql.googleapis.com/database/cpu/utilization\" AND ${local.sql}"
          aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", by = []
          window  = 300, above = 0.9, seconds = 900
        }
      }
    }
    backup_failed = {
      severity = "ERROR"
      means    = "Cloud SQL could not back up the database."
      conditions = {
        "A backup failed" = {
          filter  = "metric.type=\"logging.googleapis.com/user/${google_logging_metric.backup_failures.name}\" AND resource.type=\"cloudsql_database\""
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 600, above = 0, seconds = 0
        }
      }
    }
    timer_lateness = {
      severity = "ERROR"
      means    = "Timers fire more than a minute late, or the sweep does not run."
      conditions = {
        "Timers are overdue" = {
          filter  = local.counted.late_timers
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
          filter  = local.counted.dead_letters
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 0, seconds = 0
        }
        "Dead letters wait to be stored" = {
          filter  = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscriptions_of.dead_letters}"
          aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.labels.subscription_id"]
          window  = 60, above = 600, seconds = 300
        }
      }
    }
    attempts_not_taken = {
      severity = "ERROR"
      means    = "Tasks fail because no worker of their queue takes them."
      conditions = {
        "An attempt was not taken" = {
          filter  = local.counted.untaken_attempts
          aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = []
          window  = 300, above = 0, seconds = 0
        }
      }
    }
    breaker_open = {
      severity = "WARNING"
      means    = "Attempts at a task, or calls to a host, fail so often that a breaker blocks them for a while."
      conditions = {
        "A breaker opened" = {
          filter  = local.counted.open_breakers
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

# Cloud SQL writes a line for each automated backup.
resource "google_logging_metric" "backup_failures" {
  project     = var.project_id
  name        = "${var.name}/backup_failures"
  description = "Automated backups of the database that failed."
  filter      = "logName=\"projects/${var.project_id}/logs/cloudaudit.googleapis.com%2Fsystem_event\" AND resource.type=\"cloudsql_database\" AND resource.labels.database_id=\"${var.project_id}:${local.database_instance}\" AND protoPayload.methodName=\"cloudsql.instances.automatedBackup\" AND protoPayload.metadata.windowStatus=~\"FAIL|OVERDUE\""

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"
  }

  depends_on = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "alert" {
  for_each = { for name, alert in local.alerts : name => alert if !contains(local.alerts_on_metrics, name) }

  project      = var.project_id
  display_name = "${title(var.name)}: ${replace(each.key, "_", " ")}"
  combiner     = "OR"
  severity     = each.value.severity
  # Everything goes to email; what cannot wait also goes to the person on call.
  notification_channels = concat([for channel in google_monitoring_notification_channel.email : channel.id], each.value.severity == "CRITICAL" ? var.paging_channels : [])
  user_labels           = { app = "ebbflow", installation = var.name }

  dynamic "conditions" {
    for_each = each.value.conditions
    content {
      display_name = conditions.key
      condition_threshold {
        filter          = conditions.value.filter
        comparison      = "COMPARISON_GT"
        threshold_value = conditions.value.above
        duration        = "${conditions.value.seconds}s"

        aggregations {
          alignment_period     = "${conditions.value.window}s"
          per_series_aligner   = conditions.value.aligner
          cross_series_reducer = conditions.value.reducer
          group_by_fields      = conditions.value.by
        }
        trigger {
          count = 1
        }
      }
    }
  }

  dynamic "conditions" {
    for_each = try(each.value.queries, {})
    content {
      display_name = conditions.key
      condition_prometheus_query_language {
        query               = conditions.value
        duration            = "${try(each.value.seconds, 0)}s"
        evaluation_interval = "60s"
      }
    }
  }

  # A sweep that never answers logs nothing.
  dynamic "conditions" {
    for_each = each.key == "timer_lateness" ? ["No response from the sweep"] : []
    content {
      display_name = conditions.value
      condition_absent {
        filter   = "${replace(local.requests, local.service_names, "${var.name}-sweep")} AND metric.labels.response_code_class=\"2xx\""
        duration = var.wake == "tick" ? "300s" : "7200s"
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = "ALIGN_RATE"
          cross_series_reducer = "REDUCE_SUM"
        }
      }
    }
  }

  # Only trigger is probed: Identity-Aware Proxy may stand before the console, and the others are not public.
  dynamic "conditions" {
    for_each = each.key == "service_down" && local.api_is_probed ? ["The API does not answer"] : []
    content {
      display_name = conditions.value
      condition_threshold {
        filter          = "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\" AND metric.labels.check_id=\"${google_monitoring_uptime_check_config.api[0].uptime_check_id}\""
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

resource "google_monitoring_uptime_check_config" "api" {
  count = local.api_is_probed ? 1 : 0

  project      = var.project_id
  display_name = "${title(var.name)}: API"
  # The longest: a check may start an instance, which responds once it has reached the database.
  timeout = "60s"
  # More frequent checks would keep an instance up.
  period = "900s"

  http_check {
    # Google's front end answers some paths that end in `z` itself.
    path         = "/alive"
    port         = 443
    use_ssl      = true
    validate_ssl = true
  }

  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project_id
      host       = trimprefix(local.api_url, "https://")
    }
  }

  depends_on = [google_project_service.api]
}
