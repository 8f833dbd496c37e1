# Who may call, read and publish what, as it would be applied.

provider "google" {}

# What is only ever written is not sent anywhere.
override_resource {
  target = google_sql_user.functions
}
override_resource {
  target = google_secret_manager_secret_version.database_url
}

variables {
  project_id       = "some-project"
  image            = "us-central1-docker.pkg.dev/some-project/ebbflow/ebbflow:1"
  worker_image     = "us-central1-docker.pkg.dev/some-project/ebbflow/ebbflow-worker:1"
  queues           = { light = {}, heavy = { concurrency = 1 }, slow-queue = { timeout_seconds = 30 } }
  database         = { max_connections = 60 }
  api              = { accounts = ["@example.com"] }
  workflow_secrets = { default = ["api-key"], acme-north = ["api-key", "OTHER_key"] }
  notice_topics    = ["my-notices"]
  alert_emails     = ["ada@example.com"]
  database_people  = ["ada@example.com", "group:operators@example.com"]
  runbook_url      = "https://example.com/runbook"
  paging_channels  = ["projects/some-project/notificationChannels/1"]
}

run "everything_is_applied" {
  command = apply

  assert {
    condition     = toset(keys(google_cloud_run_v2_service.function)) == toset(["trigger", "evaluate", "sweep", "console", "execute-light", "execute-heavy", "execute-slow-queue"])
    error_message = "There must be a service for each function, and an execute for each queue."
  }
  assert {
    condition     = alltrue([for name, service in google_cloud_run_v2_service.function : service.template[0].service_account == google_service_account.function[name].email])
    error_message = "Every service has an account of its own."
  }
  assert {
    condition     = length(distinct([for account in google_service_account.function : account.account_id])) == length(google_service_account.function)
    error_message = "No two services share an account."
  }
  assert {
    condition     = alltrue([for name, service in google_cloud_run_v2_service.function : service.template[0].containers[0].args == tolist(["serve", local.functions[name].function])])
    error_message = "Every service serves its function."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : service.template[0].containers[0].resources[0].cpu_idle])
    error_message = "No service is billed while it handles no request."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : service.template[0].containers[0].startup_probe[0].http_get[0].path == "/started" && service.template[0].containers[0].startup_probe[0].failure_threshold >= 60 && service.template[0].containers[0].startup_probe[0].failure_threshold <= 240 && service.template[0].containers[0].liveness_probe[0].http_get[0].path == "/livez" && service.template[0].containers[0].liveness_probe[0].period_seconds <= 60])
    error_message = "A service starts with its first connection to the database, and has minutes for it; probes let an idle one close what it does not use."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : one(service.template[0].volumes[0].cloud_sql_instance[0].instances) == google_sql_database_instance.this.connection_name])
    error_message = "Every service reaches the database by its socket."
  }
  assert {
    condition     = alltrue([for service in concat(values(google_cloud_run_v2_service.function)) : anytrue([for env in service.template[0].containers[0].env : env.name == "DATABASE_URL" && length(env.value_source) == 1])])
    error_message = "Every service has the database's address from its secret."
  }
  assert {
    condition     = toset(keys(google_secret_manager_secret_iam_member.database_url)) == toset(concat(keys(google_cloud_run_v2_service.function), ["migrate"]))
    error_message = "Every service and the migration may read the database's address."
  }
  assert {
    condition     = toset([for member in google_secret_manager_secret_iam_member.workflows : member.member]) == toset([for name, account in google_service_account.function : account.member if startswith(name, "execute-") || contains(["trigger", "console"], name)])
    error_message = "Executors, trigger and console, and they alone, may read what workflows name."
  }
  assert {
    condition     = toset([for member in google_secret_manager_secret_iam_member.workflows : member.secret_id]) == toset(["ebbflow_default_api-key", "ebbflow_acme-north_api-key", "ebbflow_acme-north_OTHER_key"])
    error_message = "Every tenant has secrets of its own."
  }
  assert {
    condition = alltrue([for name in ["trigger", "execute-light"] :
      { for env in google_cloud_run_v2_service.function[name].template[0].containers[0].env : env.name => env.value_source[0].secret_key_ref[0].secret if startswith(env.name, "EBB_SECRET_") } ==
      { EBB_SECRET_DEFAULT__API_KEY = "ebbflow_default_api-key", EBB_SECRET_ACME_NORTH__API_KEY = "ebbflow_acme-north_api-key", EBB_SECRET_ACME_NORTH__OTHER_KEY = "ebbflow_acme-north_OTHER_key" }
    ])
    error_message = "A variable names the tenant whose secret it holds."
  }
  assert {
    condition     = google_cloud_run_v2_service.function["execute-light"].template[0].containers[0].image == var.worker_image && google_cloud_run_v2_service.function["sweep"].template[0].containers[0].image == var.image
    error_message = "Executors have tools, the others do not."
  }
}

run "pushes_are_signed_and_checked" {
  command = apply

  assert {
    condition     = toset(values(local.receivers)) == toset([for name in keys(google_cloud_run_v2_service.function) : name if name != "console"]) && toset(keys(google_pubsub_subscription.push)) == toset(keys(local.receivers))
    error_message = "Every function but the console has a subscription."
  }
  assert {
    condition     = google_pubsub_subscription.push["trigger-lifecycle"].filter == "attributes.\"ce-type\" = \"dev.ebbflow.run.finished.v1\"" && alltrue([for name, subscription in google_pubsub_subscription.push : subscription.filter == null || name == "trigger-lifecycle"])
    error_message = "Trigger receives the ends of runs only; other subscribers receive everything on their topic."
  }
  assert {
    condition     = alltrue([for name, subscription in google_pubsub_subscription.push : subscription.push_config[0].push_endpoint == "${google_cloud_run_v2_service.function[local.receivers[name]].uri}/push"])
    error_message = "Every subscription pushes to its function."
  }
  assert {
    condition     = alltrue([for subscription in concat(values(google_pubsub_subscription.push), values(google_pubsub_subscription.dead_letters)) : subscription.push_config[0].oidc_token[0].service_account_email == google_service_account.invoker.email])
    error_message = "Every push is signed as the invoker."
  }
  assert {
    condition     = alltrue([for name, subscription in google_pubsub_subscription.push : contains(google_cloud_run_v2_service.function[local.receivers[name]].custom_audiences, subscription.push_config[0].oidc_token[0].audience) && local.environment[local.receivers[name]].EBB_PUSH_AUDIENCE == subscription.push_config[0].oidc_token[0].audience])
    error_message = "Every push is for the audience that its function expects, and Cloud Run accepts."
  }
  assert {
    condition     = toset(keys(google_cloud_run_v2_service_iam_member.invoker)) == toset(values(local.receivers)) && alltrue([for member in google_cloud_run_v2_service_iam_member.invoker : member.member == google_service_account.invoker.member && member.role == "roles/run.invoker"])
    error_message = "The invoker may call every function that is pushed to."
  }
  assert {
    condition     = google_service_account_iam_member.agent_signs.role == "roles/iam.serviceAccountTokenCreator" && google_service_account_iam_member.agent_signs.member == local.pubsub_agent
    error_message = "Pub/Sub may sign as the invoker."
  }
  assert {
    condition     = alltrue([for name, service in google_cloud_run_v2_service.function : (service.ingress == "INGRESS_TRAFFIC_ALL") == (local.environment[name].EBB_PUSH_AUTH == "oidc") && (!service.invoker_iam_disabled || local.environment[name].EBB_PUSH_AUTH == "oidc")])
    error_message = "Where Cloud Run checks nobody, the function must check everything itself."
  }
  assert {
    condition     = alltrue([for name in keys(google_cloud_run_v2_service.function) : !google_cloud_run_v2_service.function[name].invoker_iam_disabled || contains(["trigger", "console"], name)])
    error_message = "Only trigger and console can be reached from outside."
  }
  assert {
    condition     = alltrue([for environment in values(local.environment) : try(environment.EBB_API_AUDIENCE, "") != environment.EBB_PUSH_AUDIENCE])
    error_message = "A token for pushes is not good for the API."
  }
  assert {
    condition     = google_cloud_scheduler_job.sweep.http_target[0].uri == "${google_cloud_run_v2_service.function["sweep"].uri}/sweep" && google_cloud_scheduler_job.sweep.http_target[0].oidc_token[0].audience == local.environment.sweep.EBB_PUSH_AUDIENCE && google_cloud_scheduler_job.sweep.schedule == "* * * * *"
    error_message = "The scheduler wakes the sweep every minute."
  }
}

run "what_cannot_be_delivered_is_kept" {
  command = apply

  assert {
    condition     = alltrue([for name, subscription in google_pubsub_subscription.push : subscription.dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letters[local.subscriptions[name]].id && subscription.dead_letter_policy[0].max_delivery_attempts >= 20])
    error_message = "Every subscription has a dead-letter topic, and enough deliveries before it."
  }
  assert {
    condition     = toset(keys(google_pubsub_subscription_iam_member.agent_takes)) == toset(keys(google_pubsub_subscription.push)) && alltrue([for name, member in google_pubsub_subscription_iam_member.agent_takes : member.subscription == google_pubsub_subscription.push[name].name && member.role == "roles/pubsub.subscriber" && member.member == local.pubsub_agent])
    error_message = "Pub/Sub may take dead letters from every subscription."
  }
  assert {
    condition     = toset(keys(google_pubsub_topic_iam_member.agent_dead_letters)) == toset(keys(google_pubsub_topic.dead_letters)) && alltrue([for name, member in google_pubsub_topic_iam_member.agent_dead_letters : member.topic == google_pubsub_topic.dead_letters[name].name && member.role == "roles/pubsub.publisher" && member.member == local.pubsub_agent])
    error_message = "Pub/Sub may publish to every dead-letter topic."
  }
  assert {
    condition     = alltrue([for name, subscription in google_pubsub_subscription.dead_letters : subscription.topic == google_pubsub_topic.dead_letters[name].id && subscription.push_config[0].push_endpoint == "${google_cloud_run_v2_service.function["evaluate"].uri}/dead-letters"])
    error_message = "Evaluate keeps the letters of every topic."
  }
  assert {
    condition     = alltrue([for subscription in concat(values(google_pubsub_subscription.push), values(google_pubsub_subscription.dead_letters)) : subscription.expiration_policy[0].ttl == "" && length(subscription.retry_policy) == 1])
    error_message = "No subscription expires, and each backs off."
  }
  assert {
    condition     = alltrue([for name, subscription in google_pubsub_subscription.push : local.receivers[name] == "trigger" ? subscription.ack_deadline_seconds == 60 : tonumber(trimsuffix(google_cloud_run_v2_service.function[local.receivers[name]].template[0].timeout, "s")) <= subscription.ack_deadline_seconds])
    error_message = "No handler outlives the deadline after which its message comes again."
  }
  assert {
    condition     = [for member in google_pubsub_topic_iam_member.execute_gives_notice : [member.topic, member.member]] == [["my-notices", google_service_account.function["execute-light"].member]]
    error_message = "Only the worker that runs callbacks publishes to your topics."
  }
  assert {
    condition     = length(google_pubsub_topic_iam_member.function_publishes) == length(google_pubsub_topic.topic) * length(google_cloud_run_v2_service.function) && alltrue([for member in google_pubsub_topic_iam_member.function_publishes : member.role == "roles/pubsub.publisher"])
    error_message = "Every function may publish to every topic, and no more than that."
  }
}

run "the_database_is_safe" {
  command = apply

  assert {
    condition     = !google_sql_database_instance.this.settings[0].ip_configuration[0].ipv4_enabled && google_sql_database_instance.this.settings[0].ip_configuration[0].ssl_mode == "ENCRYPTED_ONLY"
    error_message = "The database has no public address."
  }
  assert {
    condition     = google_sql_database_instance.this.settings[0].backup_configuration[0].enabled && google_sql_database_instance.this.settings[0].backup_configuration[0].point_in_time_recovery_enabled && google_sql_database_instance.this.settings[0].backup_configuration[0].transaction_log_retention_days == 7
    error_message = "Every moment of the last seven days can be gone back to."
  }
  assert {
    condition     = google_sql_database_instance.this.database_version == "POSTGRES_15" && google_sql_database_instance.this.deletion_protection && google_sql_database_instance.this.settings[0].retain_backups_on_delete
    error_message = "It is Postgres 15, and not destroyed by mistake."
  }
  assert {
    condition     = contains([for flag in google_sql_database_instance.this.settings[0].database_flags : "${flag.name}=${flag.value}"], "cloudsql.iam_authentication=on") && google_sql_user.people["group:operators@example.com"].type == "CLOUD_IAM_GROUP" && google_sql_user.people["group:operators@example.com"].name == "operators@example.com"
    error_message = "People log in as themselves."
  }
  assert {
    condition     = google_sql_user.functions.password == null && google_secret_manager_secret_version.database_url.secret_data == null
    error_message = "The state does not know the password."
  }
  assert {
    condition     = google_cloud_run_v2_job.migrate.template[0].template[0].containers[0].args == tolist(["migrate"]) && google_cloud_run_v2_job.migrate.template[0].template[0].max_retries == 0
    error_message = "The migration is run once."
  }
}

run "alerts_lead_to_the_runbook" {
  command = apply

  assert {
    condition     = alltrue([for name, policy in google_monitoring_alert_policy.alert : startswith(policy.documentation[0].links[0].url, "https://example.com/runbook#") && length(policy.notification_channels) == (policy.severity == "CRITICAL" ? 2 : 1)])
    error_message = "Every alert calls somebody and leads to its chapter; critical ones page."
  }
  assert {
    condition     = length(google_monitoring_alert_policy.alert["timer_lateness"].conditions) == 2 && length(google_monitoring_alert_policy.alert["service_down"].conditions) == 2
    error_message = "A silent sweep and a silent console are noticed."
  }
  assert {
    condition     = length(jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles) == length(local.charts)
    error_message = "The dashboard shows every chart."
  }
}

run "alerts_fire_when_they_say" {
  command = apply

  assert {
    condition = {
      for name, policy in google_monitoring_alert_policy.alert : name =>
      [for condition in policy.conditions : coalesce(one([for limit in condition.condition_threshold : "${limit.threshold_value} within ${limit.aggregations[0].alignment_period} for ${limit.duration}"]), "otherwise")]
      } == {
      service_down         = ["otherwise", "1 within 1200s for 0s"]
      database_errors      = ["54 within 60s for 300s", "5 within 300s for 0s"]
      failure_rate         = ["otherwise"]
      task_failures        = ["20 within 600s for 0s"]
      stalled_run          = ["0 within 600s for 1800s"]
      queue_depth          = ["510 within 60s for 300s"]
      queue_depth_critical = ["1010 within 60s for 300s"]
      workers_missing      = ["otherwise"]
      backlog              = ["0 within 600s for 1800s"]
      too_many_requests    = ["10 within 300s for 0s"]
      database_disk        = ["0.85 within 300s for 1800s"]
      database_cpu         = ["0.9 within 300s for 900s"]
      backup_failed        = ["0 within 600s for 0s"]
      timer_lateness       = ["0 within 600s for 0s", "otherwise"]
      dead_letters         = ["0 within 300s for 0s", "600 within 60s for 300s"]
      attempts_not_taken   = ["0 within 300s for 0s"]
      breaker_open         = ["0 within 300s for 0s"]
    }
    error_message = "A threshold is not what the runbook says."
  }
  assert {
    condition = alltrue([for name, part in {
      task_failures        = "user/ebbflow/task_failures"
      stalled_run          = "user/ebbflow/stalled_runs"
      queue_depth          = "num_undelivered_messages"
      queue_depth_critical = "num_undelivered_messages"
      backlog              = "user/ebbflow/waiting_attempts"
      too_many_requests    = "response_code=\"429\""
      database_disk        = "database/disk/utilization"
      database_cpu         = "database/cpu/utilization"
      backup_failed        = "user/ebbflow/backup_failures"
      timer_lateness       = "user/ebbflow/late_timers"
      dead_letters         = "user/ebbflow/dead_letters"
      attempts_not_taken   = "user/ebbflow/untaken_attempts"
      breaker_open         = "user/ebbflow/open_breakers"
    } : strcontains(google_monitoring_alert_policy.alert[name].conditions[0].condition_threshold[0].filter, part)])
    error_message = "An alert watches something else."
  }
  assert {
    condition     = alltrue([for name in ["queue_depth", "queue_depth_critical"] : strcontains(google_monitoring_alert_policy.alert[name].conditions[0].condition_threshold[0].filter, "\"ebbflow-(execute-heavy|execute-light|execute-slow-queue)\"")])
    error_message = "Every queue with an execute service is watched."
  }
  assert {
    condition = one(google_monitoring_alert_policy.alert["workers_missing"].conditions[0].condition_prometheus_query_language).query == join(" ", [
      "max by (subscription_id) (pubsub_googleapis_com:subscription_oldest_unacked_message_age{monitored_resource=\"pubsub_subscription\", subscription_id=~\"ebbflow-(execute-heavy|execute-light|execute-slow-queue)\"}) > 900",
      "unless on (subscription_id) label_replace(sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"ebbflow-(execute-heavy|execute-light|execute-slow-queue)\", response_code_class=\"2xx\"}[15m])) > 0, \"subscription_id\", \"$1\", \"service_name\", \"(.+)\")",
    ])
    error_message = "A queue whose service completes tasks does not lack workers."
  }
  assert {
    condition = [for query in google_monitoring_alert_policy.alert["service_down"].conditions[0].condition_prometheus_query_language : [query.duration, query.query]] == [["300s", join(" ", [
      "sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"${local.service_names}\", response_code_class=\"5xx\"}[5m]))",
      "/ sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"${local.service_names}\"}[5m])) > 0.5",
      "and sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\", service_name=~\"${local.service_names}\"}[5m])) >= 5",
    ])]]
    error_message = "Errors are a share of a service's requests, of at least five, for five minutes."
  }
  assert {
    condition = one(google_monitoring_alert_policy.alert["failure_rate"].conditions[0].condition_prometheus_query_language).query == join(" ", [
      "sum by (workflow) (increase(logging_googleapis_com:user_ebbflow_runs_ended{monitored_resource=\"cloud_run_revision\", state=\"failed\"}[10m]))",
      "/ sum by (workflow) (increase(logging_googleapis_com:user_ebbflow_runs_ended{monitored_resource=\"cloud_run_revision\"}[10m])) > 0.2",
      "and sum by (workflow) (increase(logging_googleapis_com:user_ebbflow_runs_ended{monitored_resource=\"cloud_run_revision\"}[10m])) >= 5",
    ])
    error_message = "More than a fifth of a workflow's runs, of at least five."
  }
}

run "slow_tasks_are_compared_with_the_day_before" {
  command = apply

  variables {
    otlp = { google = true }
  }

  assert {
    condition = one(google_monitoring_alert_policy.alert["slow_tasks"].conditions[0].condition_prometheus_query_language).query == join(" ", [
      "histogram_quantile(0.99, sum by (le, kind) (rate(ebbflow_attempt_seconds_bucket{cluster=\"ebbflow\"}[30m])))",
      "> 2 * histogram_quantile(0.99, sum by (le, kind) (rate(ebbflow_attempt_seconds_bucket{cluster=\"ebbflow\"}[1d] offset 30m)))",
      "and sum by (kind) (increase(ebbflow_attempt_seconds_count{cluster=\"ebbflow\"}[30m])) >= 20",
    ])
    error_message = "Twice the usual, of at least twenty, of this installation."
  }
}

# The names of everything in `ebb-test` begin like those of `ebb`.
run "an_installation_does_not_watch_another" {
  command = apply

  variables {
    name         = "ebb"
    otlp         = { google = true }
    event_topics = ["orders"]
  }

  assert {
    condition = alltrue(flatten([for filter in concat(
      [for metric in google_logging_metric.counted : metric.filter],
      [google_logging_project_exclusion.internal_requests.filter],
      flatten([for policy in google_monitoring_alert_policy.alert : [for condition in policy.conditions : concat([for limit in condition.condition_threshold : limit.filter], [for absence in condition.condition_absent : absence.filter])]]),
      [for tile in jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles : tile.widget.xyChart.dataSets[0].timeSeriesQuery.timeSeriesFilter.filter],
      ) : [for pattern in concat(flatten(regexall("=~\"([^\"]+)\"", filter)), formatlist("^(?:%s)$", flatten(regexall("full_match\\(\"([^\"]+)\"\\)", filter)))) :
      [for other in ["ebb-test-sweep", "ebb-test-execute-light", "ebb-test-trigger", "ebb-test-evaluations-dead-letters", "ebb-test-events-orders"] : !can(regex(pattern, other))]
    ]]))
    error_message = "A filter of `ebb` matches a name of `ebb-test`."
  }
  assert {
    condition = alltrue([for filter in concat(
      [for metric in google_logging_metric.counted : metric.filter],
      [google_logging_project_exclusion.internal_requests.filter],
      flatten([for policy in google_monitoring_alert_policy.alert : [for condition in policy.conditions : concat([for limit in condition.condition_threshold : limit.filter], [for absence in condition.condition_absent : absence.filter])]]),
      [for tile in jsondecode(google_monitoring_dashboard.this.dashboard_json).mosaicLayout.tiles : tile.widget.xyChart.dataSets[0].timeSeriesQuery.timeSeriesFilter.filter],
    ) : length(regexall("=~\"\\^ebb-\\(.+\\)\\$\"|full_match\\(\"ebb-.+\"\\)|/user/ebb/|:ebb\"|check_id=", filter)) > 0 && !strcontains(filter, "starts_with(")])
    error_message = "A filter is not limited to this installation by whole names."
  }
  assert {
    condition     = alltrue(flatten([for policy in google_monitoring_alert_policy.alert : [for condition in policy.conditions : [for query in condition.condition_prometheus_query_language : length(regexall("cluster=\"ebb\"|user_ebb_runs|(subscription_id|service_name)=~\"ebb-\\([a-z|-]+\\)\"", query.query)) == length(regexall("_googleapis_com:|ebbflow_attempt_seconds_", query.query))]]]))
    error_message = "Every part of a query is limited to this installation."
  }
  assert {
    condition     = alltrue([for name in keys(local.functions) : can(regex("^(?:${local.service_names})$", google_cloud_run_v2_service.function[name].name))]) && alltrue([for subscription in concat(values(google_pubsub_subscription.push), values(google_pubsub_subscription.dead_letters), values(google_pubsub_subscription.events)) : can(regex("^(?:${one(flatten(regexall("full_match\\(\"([^\"]+)\"\\)", local.subscriptions_of.any)))})$", subscription.name))])
    error_message = "The installation watches all of its own services and subscriptions."
  }
}

run "functions_log_in_with_a_password_unless_configured_otherwise" {
  command = apply

  assert {
    condition     = toset(keys(google_secret_manager_secret_iam_member.database_url)) == setunion(keys(local.functions), ["migrate"])
    error_message = "The services that need the password may read it."
  }
  assert {
    condition     = length(google_storage_bucket.archive) == 0 && !contains(keys(local.environment.sweep), "EBB_ARCHIVE_BUCKET")
    error_message = "Nothing is archived unless asked for."
  }
}

run "runs_may_be_archived" {
  command = apply

  variables {
    archive = { keep_days = 3650 }
    otlp    = { endpoint = "https://collector.example.com" }
  }

  assert {
    condition     = google_storage_bucket.archive["this"].name == "some-project-ebbflow-archive" && google_storage_bucket.archive["this"].public_access_prevention == "enforced" && google_storage_bucket.archive["this"].uniform_bucket_level_access
    error_message = "The archive is nobody else's to see."
  }
  assert {
    condition     = one(one(google_storage_bucket.archive["this"].lifecycle_rule).condition).age == 3650
    error_message = "It is kept for as long as asked for."
  }
  assert {
    condition     = google_storage_bucket_iam_member.sweep_archives["this"].role == "roles/storage.objectCreator" && google_storage_bucket_iam_member.sweep_archives["this"].member == google_service_account.function["sweep"].member
    error_message = "The sweep may add to it, and no more."
  }
  assert {
    condition     = [for name, environment in local.environment : name if contains(keys(environment), "EBB_ARCHIVE_BUCKET")] == ["sweep"] && local.environment.sweep.EBB_ARCHIVE_BUCKET == google_storage_bucket.archive["this"].name
    error_message = "The sweep knows where to archive."
  }
  assert {
    condition     = alltrue([for environment in values(local.environment) : environment.EBB_OTLP_ENDPOINT == "https://collector.example.com"])
    error_message = "Every function sends its metrics and spans."
  }
}

run "a_collector_may_need_headers" {
  command = apply

  variables {
    otlp = { endpoint = "https://collector.example.com", headers_secret = "collector-headers" }
  }

  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : [for env in service.template[0].containers[0].env : env.value_source[0].secret_key_ref[0].secret if env.name == "EBB_OTLP_HEADERS"] == ["collector-headers"]]) && toset([for member in google_secret_manager_secret_iam_member.otlp : member.member]) == toset([for account in google_service_account.function : account.member])
    error_message = "Every function has the headers from their secret, and may read it."
  }
  assert {
    condition     = alltrue([for environment in values(local.environment) : !contains(keys(environment), "EBB_OTLP_AUTH")]) && length(google_project_iam_member.function_sends_telemetry) == 0
    error_message = "Only Google is sent tokens of Google."
  }
}

run "messages_of_others_are_events" {
  command = apply

  variables {
    event_topics = ["orders", "uploads"]
  }

  assert {
    condition     = toset(keys(google_pubsub_subscription.events)) == toset(["orders", "uploads"]) && alltrue([for subscription in google_pubsub_subscription.events : subscription.push_config[0].push_endpoint == "${google_cloud_run_v2_service.function["trigger"].uri}/push"])
    error_message = "Trigger is pushed them."
  }
  assert {
    condition     = alltrue([for subscription in google_pubsub_subscription.events : subscription.push_config[0].oidc_token[0].service_account_email == google_service_account.invoker.email && subscription.push_config[0].oidc_token[0].audience == local.audiences.trigger])
    error_message = "With tokens that trigger believes."
  }
  assert {
    condition     = alltrue([for subscription in google_pubsub_subscription.events : subscription.dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letters["ebbflow-triggers"].id]) && toset([for member in google_pubsub_subscription_iam_member.agent_takes_events : member.subscription]) == toset([for subscription in google_pubsub_subscription.events : subscription.name])
    error_message = "What cannot be taken in is kept."
  }
}

run "without_an_api_nothing_is_public" {
  command = plan

  variables {
    api = null
  }

  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : service.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && !service.invoker_iam_disabled])
    error_message = "Nothing can be reached from outside."
  }
  assert {
    condition     = alltrue([for environment in values(local.environment) : environment.EBB_PUSH_AUTH == "iam" && !contains(keys(environment), "EBB_API_AUDIENCE")])
    error_message = "Cloud Run checks every caller."
  }
  assert {
    condition     = toset([for key in keys(google_pubsub_topic_iam_member.function_publishes) : split(" ", key)[0]]) == toset([for name in keys(google_cloud_run_v2_service.function) : name if name != "console"])
    error_message = "A console that serves nobody publishes nothing."
  }
}

run "functions_may_log_in_as_themselves" {
  command = apply

  variables {
    database = { max_connections = 60, iam_login = true }
  }

  assert {
    condition     = toset(keys(google_sql_user.function)) == toset(keys(google_cloud_run_v2_service.function)) && alltrue([for user in google_sql_user.function : user.type == "CLOUD_IAM_SERVICE_ACCOUNT" && !endswith(user.name, ".gserviceaccount.com")])
    error_message = "Every function has a user of its own in the database."
  }
  assert {
    condition     = toset([for member in google_project_iam_member.function_logs_in : member.member]) == toset([for account in google_service_account.function : account.member]) && alltrue([for member in google_project_iam_member.function_logs_in : member.role == "roles/cloudsql.instanceUser"])
    error_message = "Every function may log in."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : anytrue([for env in service.template[0].containers[0].env : env.name == "EBB_DATABASE_LOGIN" && env.value == "iam"]) && anytrue([for env in service.template[0].containers[0].env : env.name == "DATABASE_URL" && length(env.value_source) == 0])])
    error_message = "No function needs the password."
  }
  assert {
    condition     = keys(google_secret_manager_secret_iam_member.database_url) == ["migrate"]
    error_message = "Nobody but the migration may read the password."
  }
  assert {
    condition     = anytrue([for env in google_cloud_run_v2_job.migrate.template[0].template[0].containers[0].env : env.name == "EBB_GRANT_TO" && length(split(",", coalesce(env.value, " "))) == length(google_sql_user.function)])
    error_message = "The migration lets all of them in."
  }
}

run "people_may_sign_in_and_requests_go_where_they_are_let" {
  command = plan

  variables {
    api     = { accounts = ["@example.com"] }
    sign_in = { client_id = "console-client", client_secret = "console-client-secret", session_key = "console-session-key" }
    egress  = { only = ["*.partner.example", "10.8.0.0/24"], allow = ["10.8.0.0/24"] }
  }

  assert {
    condition     = alltrue([for name in ["console", "trigger"] : local.environment[name].EBB_SIGN_IN_CLIENT_ID == "console-client"])
    error_message = "Console and trigger know the client."
  }
  assert {
    condition     = alltrue([for name in ["console", "trigger"] : length([for env in google_cloud_run_v2_service.function[name].template[0].containers[0].env : env if contains(["EBB_SESSION_KEY", "EBB_SIGN_IN_CLIENT_SECRET"], env.name) && length(env.value_source) == 1]) == 2])
    error_message = "What must stay secret comes from Secret Manager."
  }
  assert {
    condition     = length(google_secret_manager_secret_iam_member.sign_in) == 4
    error_message = "Console and trigger, and nobody else, may read both secrets."
  }
  assert {
    condition     = local.environment["execute-light"].EBB_EGRESS_ONLY == "*.partner.example,10.8.0.0/24" && local.environment["execute-light"].EBB_EGRESS_ALLOW == "10.8.0.0/24"
    error_message = "Services that execute tasks get the egress policy."
  }
}

run "a_minimum_belongs_to_the_service_and_not_to_its_revisions" {
  command = apply

  variables {
    functions = { trigger = { min_instances = 1 }, evaluate = {}, sweep = {}, console = {} }
  }

  assert {
    condition     = google_cloud_run_v2_service.function["trigger"].scaling[0].min_instance_count == 1 && alltrue([for name, service in google_cloud_run_v2_service.function : service.scaling[0].max_instance_count == local.functions[name].max_instances])
    error_message = "Minimum and maximum are those of the service."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : service.template[0].scaling[0].min_instance_count == null])
    error_message = "A revision that is tagged and receives no traffic keeps no instance."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : !service.deletion_protection])
    error_message = "A service whose first revision did not start can be replaced."
  }
}

run "what_owns_tables_is_abandoned_with_its_instance" {
  command = apply

  variables {
    database = { max_connections = 60, iam_login = true }
  }

  assert {
    condition     = alltrue([for user in concat(values(google_sql_user.function), values(google_sql_user.people)) : user.deletion_policy == "ABANDON"]) && google_sql_database.this.deletion_policy == "ABANDON" && google_service_networking_connection.database.deletion_policy == "ABANDON"
    error_message = "Postgres does not drop a user who owns tables."
  }
}

run "people_reach_the_console_through_the_proxy" {
  command = apply

  variables {
    api = { accounts = ["ada@example.com", "@example.org", "robot@some-project.iam.gserviceaccount.com"] }
    iap = true
  }

  assert {
    condition     = [for name, service in google_cloud_run_v2_service.function : name if service.iap_enabled] == ["console"] && !google_cloud_run_v2_service.function["console"].invoker_iam_disabled && google_cloud_run_v2_service.function["trigger"].invoker_iam_disabled
    error_message = "The proxy stands before the console alone, and Pub/Sub still reaches trigger."
  }
  assert {
    condition     = toset([for member in google_iap_web_cloud_run_service_iam_member.console : member.member]) == toset(["user:ada@example.com", "domain:example.org", "serviceAccount:robot@some-project.iam.gserviceaccount.com"])
    error_message = "Callers of the API may pass."
  }
  assert {
    condition     = google_cloud_run_v2_service_iam_member.iap[0].role == "roles/run.invoker" && endswith(google_cloud_run_v2_service_iam_member.iap[0].member, "@gcp-sa-iap.iam.gserviceaccount.com")
    error_message = "The proxy may call the console."
  }
  assert {
    condition     = jsondecode(local.environment.console.EBB_API_ISSUERS)[0].issuer == "https://cloud.google.com/iap" && jsondecode(local.environment.console.EBB_API_ISSUERS)[0].audience == local.iap_audience && !contains(keys(local.environment.trigger), "EBB_API_ISSUERS")
    error_message = "The console accepts the proxy's tokens, and nobody else does."
  }
  assert {
    condition     = contains(keys(google_project_service.api), "iap.googleapis.com")
    error_message = "The proxy's API is enabled."
  }
}

run "the_sweep_is_woken_by_tasks" {
  command = apply

  variables {
    wake = "tasks"
  }

  assert {
    condition     = google_cloud_tasks_queue.wake[0].name == "ebbflow-wake" && google_cloud_scheduler_job.sweep.schedule == "0 * * * *" && contains(keys(google_project_service.api), "cloudtasks.googleapis.com")
    error_message = "There is a queue, and the tick is a safety net."
  }
  assert {
    condition     = alltrue([for name in keys(local.functions) : local.environment[name].EBB_WAKE == "tasks" && contains(keys(local.environment[name]), "EBB_WAKE_QUEUE") == (name == "sweep")])
    error_message = "Every function announces what is due, and the sweep requests its own calls."
  }
  assert {
    condition     = endswith(local.environment.sweep.EBB_WAKE_QUEUE, "/queues/${google_cloud_tasks_queue.wake[0].name}") && google_cloud_tasks_queue_iam_member.sweep_requests[0].role == "roles/cloudtasks.enqueuer" && google_cloud_tasks_queue_iam_member.sweep_requests[0].member == google_service_account.function["sweep"].member && google_service_account_iam_member.sweep_requests[0].role == "roles/iam.serviceAccountUser"
    error_message = "The sweep may create tasks that call it as the invoker."
  }
}

run "the_database_keeps_hours" {
  command = apply

  variables {
    database_hours = { start = "0 7 * * 1-5", stop = "0 20 * * *", time_zone = "Europe/Berlin" }
  }

  assert {
    condition     = { for name, job in google_cloud_scheduler_job.database_hours : name => jsondecode(base64decode(job.http_target[0].body)).settings.activationPolicy } == { start = "ALWAYS", stop = "NEVER" } && alltrue([for job in google_cloud_scheduler_job.database_hours : job.http_target[0].http_method == "PATCH"])
    error_message = "One job starts it, one stops it."
  }
  assert {
    condition     = alltrue([for member in google_project_iam_member.database_hours : strcontains(one(member.condition).expression, "/instances/ebbflow'")])
    error_message = "Their account may change this instance only."
  }
  assert {
    condition     = length(google_monitoring_uptime_check_config.api) == 0 && length(google_monitoring_alert_policy.alert["service_down"].conditions) == 1
    error_message = "Nothing wakes the API while the database is stopped, and nobody is paged every evening."
  }
}

run "names_of_your_own_are_served" {
  command = apply

  variables {
    domain = { console = "ebbflow.example.com", api = "api.ebbflow.example.com" }
  }

  assert {
    condition     = alltrue([for name in ["console", "trigger"] : google_cloud_run_v2_service.function[name].ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"]) && length(google_compute_backend_service.front) == 2
    error_message = "Requests come through the load balancer."
  }
  assert {
    condition     = local.console_url == "https://ebbflow.example.com" && local.environment.console.EBB_CONSOLE_URL == local.console_url && local.api_url == "https://api.ebbflow.example.com"
    error_message = "Links use the names."
  }
}

run "two_share_a_project" {
  command = apply

  variables {
    name           = "ebb-test"
    api            = { accounts = ["@example.com"] }
    iap            = true
    wake           = "tasks"
    otlp           = { google = true }
    archive        = {}
    event_topics   = ["projects/other-project/topics/orders"]
    database_hours = { start = "0 7 * * 1-5", stop = "0 20 * * *" }
  }

  assert {
    condition = alltrue([for name in concat(
      [for service in google_cloud_run_v2_service.function : service.name],
      [for account in google_service_account.function : account.account_id],
      [for topic in concat(values(google_pubsub_topic.topic), values(google_pubsub_topic.dead_letters)) : topic.name],
      [for subscription in concat(values(google_pubsub_subscription.push), values(google_pubsub_subscription.dead_letters), values(google_pubsub_subscription.events)) : subscription.name],
      [for metric in google_logging_metric.counted : metric.name],
      [for job in google_cloud_scheduler_job.database_hours : job.name],
      [google_service_account.invoker.account_id, google_service_account.migrate.account_id, google_service_account.deployer.account_id, google_cloud_run_v2_job.migrate.name, google_cloud_scheduler_job.sweep.name,
        google_sql_database_instance.this.name, google_artifact_registry_repository.images.repository_id, google_secret_manager_secret.database_url.secret_id, google_compute_network.this.name, google_compute_subnetwork.functions.name,
      google_compute_global_address.database.name, google_cloud_tasks_queue.wake[0].name, google_logging_metric.backup_failures.name, google_logging_project_exclusion.internal_requests.name],
    ) : startswith(name, "ebb-test")])
    error_message = "Everything has the installation's name."
  }
  assert {
    condition     = alltrue([for environment in values(local.environment) : environment.EBB_TOPIC_PREFIX == "ebb-test" && environment.EBB_OTLP_AUTH == "google"]) && local.environment.trigger.EBB_API_AUDIENCE == "ebb-test-api"
    error_message = "Functions know the prefix."
  }
  assert {
    condition     = length([for member in google_project_iam_member.function_sends_telemetry : member if member.role == "roles/telemetry.writer"]) == length(local.functions) && contains(keys(google_monitoring_alert_policy.alert), "slow_tasks")
    error_message = "Functions may send metrics, and slow tasks are noticed."
  }
}

run "a_commit_deploys" {
  command = apply

  variables {
    build_trigger = { repository = "projects/some-project/locations/us-central1/connections/github/repositories/ebbflow" }
  }

  assert {
    condition     = google_cloudbuild_trigger.deploy["this"].service_account == google_service_account.deployer.id && google_cloudbuild_trigger.deploy["this"].substitutions._TAG == "$SHORT_SHA"
    error_message = "The trigger builds as the deployer, with the commit as the tag."
  }
  assert {
    condition     = google_storage_bucket_iam_member.deployer_reads_sources.bucket == google_storage_bucket.builds.name && alltrue([for member in google_project_iam_member.deployer : !startswith(member.role, "roles/storage")])
    error_message = "The deployer reads the sources of builds and no other bucket."
  }
}

run "requests_among_functions_are_not_logged" {
  command = apply

  assert {
    condition     = strcontains(google_logging_project_exclusion.internal_requests.filter, "httpRequest.status<300") && strcontains(google_logging_project_exclusion.internal_requests.filter, "^ebbflow-(evaluate|execute-heavy|execute-light|execute-slow-queue|sweep)$")
    error_message = "Only successes, only of internal services."
  }
  assert {
    condition     = google_monitoring_uptime_check_config.api[0].http_check[0].path == "/alive" && google_monitoring_uptime_check_config.api[0].timeout == "60s"
    error_message = "Google answers some paths that end in z itself, and an instance may have to start first."
  }
}

run "a_pool_leases_tasks_with_nothing_but_a_token" {
  command = apply

  variables {
    queues = { light = {}, gpu = { kind = "pool", token_secret = "worker-token", slots = 2, max_instances = 3, labels = { gpu = "true" }, task_network = "none" } }
  }

  assert {
    condition     = contains([for env in google_cloud_run_v2_worker_pool.worker["gpu"].template[0].containers[0].env : env.value if env.name == "EBB_TASK_NETWORK"], "none")
    error_message = "A pool gives programs the network that was asked for."
  }

  assert {
    condition     = toset(keys(google_cloud_run_v2_worker_pool.worker)) == toset(["gpu"]) && !contains(keys(google_cloud_run_v2_service.function), "execute-gpu")
    error_message = "A pool has workers, and no execute service."
  }
  assert {
    condition     = google_cloud_run_v2_worker_pool.worker["gpu"].template[0].containers[0].args == tolist(["worker", "--queue", "gpu", "--slots", "2", "--grace", "1", "--stop-grace", "5", "--label", "gpu=true"])
    error_message = "A pool serves its queue."
  }
  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : contains([for env in service.template[0].containers[0].env : env.value if env.name == "EBB_QUEUES"], "gpu=pool,light=600")])
    error_message = "Services that register workflows know the queues."
  }
  assert {
    condition     = google_cloud_run_v2_worker_pool.worker["gpu"].scaling[0].manual_instance_count == 3
    error_message = "A pool has as many machines as were asked for."
  }
  assert {
    condition     = toset([for env in google_cloud_run_v2_worker_pool.worker["gpu"].template[0].containers[0].env : env.name]) == toset(["EBB_URL", "EBB_TOKEN", "EBB_TASK_NETWORK", "RUST_LOG"])
    error_message = "A worker is given the server and its token, and neither the database nor secrets."
  }
  assert {
    condition     = !contains(concat([for member in google_project_iam_member.function_reaches_database : member.member], [for member in google_pubsub_topic_iam_member.function_publishes : member.member], [for member in google_secret_manager_secret_iam_member.workflows : member.member]), google_service_account.worker["gpu"].member)
    error_message = "A worker may reach neither the database, nor a topic, nor the secrets of workflows."
  }
  assert {
    condition     = google_secret_manager_secret_iam_member.worker_token["gpu"].secret_id == "worker-token"
    error_message = "A worker may read its token."
  }
  assert {
    condition     = google_cloud_run_v2_worker_pool.worker["gpu"].template[0].containers[0].image == var.worker_image
    error_message = "A worker has bash and python."
  }
}

run "code_of_users_runs_only_where_it_is_allowed" {
  command = plan

  assert {
    condition     = alltrue([for name, service in google_cloud_run_v2_service.function : anytrue([for env in service.template[0].containers[0].env : env.name == "EBB_USER_CODE" && env.value == "deny"]) == startswith(name, "execute-")])
    error_message = "By default, execute services run no code of users."
  }
}
