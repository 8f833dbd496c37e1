# One page with the main metrics. Grafana's dashboards in deploy/grafana show more, from the functions' own metrics.

locals {
  # Title → chart: filter, aligner, reducer and grouping.
  charts = {
    "Runs ended, by state"             = { filter = local.counted.runs_ended, aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", by = ["metric.label.state"] }
    "Requests by service"              = { filter = local.requests, aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", by = ["resource.label.service_name"] }
    "Errors by service"                = { filter = "${local.requests} AND metric.labels.response_code_class=\"5xx\"", aligner = "ALIGN_RATE", reducer = "REDUCE_SUM", by = ["resource.label.service_name"] }
    "Response time, p99"               = { filter = replace(local.requests, "request_count", "request_latencies"), aligner = "ALIGN_PERCENTILE_99", reducer = "REDUCE_MAX", by = ["resource.label.service_name"] }
    "Instances by service"             = { filter = replace(local.requests, "request_count", "container/instance_count"), aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = ["resource.label.service_name"] }
    "Tasks waiting for a worker"       = { filter = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscriptions_of.work}", aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = ["resource.label.subscription_id"] }
    "Age of the oldest message, in s"  = { filter = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscriptions_of.any}", aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.label.subscription_id"] }
    "Tasks that failed, by type"       = { filter = local.counted.task_failures, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = ["metric.label.kind"] }
    "Dead letters"                     = { filter = local.counted.dead_letters, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = [] }
    "Attempts lost with their workers" = { filter = local.counted.lost_attempts, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = [] }
    "Late timers"                      = { filter = local.counted.late_timers, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", by = [] }
    "Connections to the database"      = { filter = "metric.type=\"cloudsql.googleapis.com/database/postgresql/num_backends\" AND ${local.sql}", aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = [] }
    "Disk use of the database"         = { filter = "metric.type=\"cloudsql.googleapis.com/database/disk/utilization\" AND ${local.sql}", aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = [] }
    "CPU use of the database"          = { filter = "metric.type=\"cloudsql.googleapis.com/database/cpu/utilization\" AND ${local.sql}", aligner = "ALIGN_MEAN", reducer = "REDUCE_MAX", by = [] }
  }
  titles = keys(local.charts)
}

# The API leaves out zeros and empty lists, and terraform would see a change in each of them for ever: so does this.
resource "google_monitoring_dashboard" "this" {
  project = var.project_id
  dashboard_json = jsonencode({
    displayName = title(var.name)
    mosaicLayout = {
      columns = 12
      tiles = [for place, title in local.titles : merge(place % 2 == 0 ? {} : { xPos = 6 }, place < 2 ? {} : { yPos = 4 * floor(place / 2) }, {
        width  = 6
        height = 4
        widget = {
          title = title
          xyChart = {
            dataSets = [{
              plotType   = "LINE"
              targetAxis = "Y1"
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = local.charts[title].filter
                  aggregation = merge({
                    alignmentPeriod    = "60s"
                    perSeriesAligner   = local.charts[title].aligner
                    crossSeriesReducer = local.charts[title].reducer
                  }, length(local.charts[title].by) == 0 ? {} : { groupByFields = local.charts[title].by })
                }
              }
            }]
          }
        }
      })]
    }
  })

  depends_on = [google_project_service.api]
}
