# One service per function, and one execute service per queue. All run the same program.

locals {
  # The queues that execute services serve, without what only worker pools have; those are in workers.tf.
  queues = {
    for queue, size in var.queues : queue => { for name, value in size : name => value if !contains(["kind", "slots", "labels", "token_secret"], name) }
    if size.kind == "service"
  }

  functions = merge(
    {
      # Console and trigger serve event streams, which end themselves well before the longest timeout that Cloud Run offers.
      # Their other handlers take 30 s at most, so pushes to trigger keep a deadline of a minute.
      trigger = merge(var.functions.trigger, { function = "trigger", timeout = 3600, deadline = 60, public = var.api != null })
      console = merge(var.functions.console, { function = "console", timeout = 3600, deadline = 60, public = var.api != null })
      # Also stores dead letters, of which many may come at once.
      evaluate = merge(var.functions.evaluate, { function = "evaluate", timeout = 60, deadline = 60, public = false })
      # Stays up while timers are due soon.
      sweep = merge(var.functions.sweep, { function = "sweep", timeout = 600, deadline = 600, public = false })
    },
    {
      for queue, size in local.queues : "execute-${queue}" => merge(size, { function = "execute", timeout = size.timeout_seconds, deadline = size.timeout_seconds, public = false })
    },
  )

  images = { for name, function in local.functions : name => function.function == "execute" ? coalesce(var.worker_image, var.image) : var.image }

  # Unlike addresses, these are known before the services exist, so a service can be given its own.
  audiences = { for name in keys(local.functions) : name => "${var.name}-${name}-push" }
  # Cloud Run's addresses that are known before the services exist.
  addresses    = { for name in keys(local.functions) : name => "https://${var.name}-${name}-${data.google_project.this.number}.${var.region}.run.app" }
  console_url  = coalesce(var.console_url, try("https://${var.domain.console}", null), local.addresses.console)
  api_url      = coalesce(try("https://${var.domain.api}", null), local.addresses.trigger)
  iap_audience = "/projects/${data.google_project.this.number}/locations/${var.region}/services/${var.name}-console"

  api_environment = var.api == null ? {} : merge(
    {
      EBB_API_AUDIENCE = coalesce(var.api.audience, "${var.name}-api")
      EBB_API_ACCOUNTS = join(",", var.api.accounts)
      EBB_CONSOLE_URL  = local.console_url
    },
    var.api.issuer == null ? {} : {
      EBB_API_ISSUER   = var.api.issuer
      EBB_API_KEYS_URL = var.api.keys_url
    },
    var.sign_in == null ? {} : { EBB_SIGN_IN_CLIENT_ID = var.sign_in.client_id },
    try(var.sign_in.authorize_url, null) == null ? {} : {
      EBB_SIGN_IN_AUTHORIZE_URL = var.sign_in.authorize_url
      EBB_SIGN_IN_TOKEN_URL     = var.sign_in.token_url
    },
  )

  # What runs attempts obeys it: execute services and worker pools.
  egress_environment = merge(
    length(var.egress.only) == 0 ? {} : { EBB_EGRESS_ONLY = join(",", var.egress.only) },
    length(var.egress.allow) == 0 ? {} : { EBB_EGRESS_ALLOW = join(",", var.egress.allow) },
  )

  environment_by_function = {
    trigger  = local.api_environment
    evaluate = {}
    execute = merge(
      { EBB_USER_CODE = var.user_code ? "allow" : "deny" },
      local.egress_environment,
    )
    sweep = merge(
      {
        EBB_RETENTION_SUCCEEDED_DAYS    = tostring(var.retention_days.succeeded)
        EBB_RETENTION_FAILED_DAYS       = tostring(var.retention_days.failed)
        EBB_RETENTION_LOGS_DAYS         = tostring(var.retention_days.logs)
        EBB_RETENTION_OUTPUTS_DAYS      = tostring(var.retention_days.outputs)
        EBB_RETENTION_AUDIT_DAYS        = tostring(var.retention_days.audit)
        EBB_RETENTION_DEAD_LETTERS_DAYS = tostring(var.retention_days.dead_letters)
      },
      { for bucket in google_storage_bucket.archive : "EBB_ARCHIVE_BUCKET" => bucket.name },
      local.wake_environment_of_sweep,
    )
    # Identity-Aware Proxy signs in people and says who they are in a token of its own.
    console = merge(local.api_environment, !var.iap ? {} : {
      EBB_API_ISSUERS = jsonencode([{ issuer = "https://cloud.google.com/iap", audience = local.iap_audience, keys_url = "https://www.gstatic.com/iap/verify/public_key-jwk" }])
    })
  }

  # The queues with the longest that the service of each runs an attempt, for those that register workflows.
  listed_queues = join(",", [for queue, size in var.queues : "${queue}=${size.kind == "pool" ? "pool" : size.timeout_seconds}"])

  environment = {
    for name, function in local.functions : name => merge(
      {
        EBB_PROJECT              = var.project_id
        EBB_DATABASE_CONNECTIONS = tostring(function.connections)
        # A public service checks tokens itself. For the others Cloud Run has checked them, and may have removed the
        # signature.
        EBB_PUSH_AUTH     = function.public ? "oidc" : "iam"
        EBB_PUSH_AUDIENCE = local.audiences[name]
        EBB_PUSH_ACCOUNT  = google_service_account.invoker.email
        EBB_TOPIC_PREFIX  = var.name
        # After this time Cloud Run gives up on a request: attempts and streams end themselves before that.
        EBB_REQUEST_SECONDS = tostring(function.timeout)
        EBB_QUEUES          = local.listed_queues
        RUST_LOG            = var.log_filter
      },
      local.environment_by_function[function.function],
      local.wake_environment,
      var.otlp == null ? {} : { EBB_OTLP_ENDPOINT = var.otlp.endpoint },
      try(var.otlp.google, false) ? { EBB_OTLP_AUTH = "google", EBB_REGION = var.region } : {},
      var.database.iam_login ? {
        EBB_DATABASE_LOGIN = "iam"
        DATABASE_URL       = "postgres://${urlencode(local.database_accounts[name])}@localhost/${google_sql_database.this.name}?host=/cloudsql/${google_sql_database_instance.this.connection_name}"
      } : {},
      { for queue in keys(local.queues) : "EBB_QUEUE" => queue if name == "execute-${queue}" },
    )
  }

  # The variable that holds a tenant's secret: for tasks in execute, for webhook signatures in trigger, and for
  # leases of remote workers where the API is served. Neither part of a secret's id
  # before its name has a `_`, so no two tenants have a secret in common.
  workflow_secrets = merge([
    for tenant, names in var.workflow_secrets : {
      for name in names : "EBB_SECRET_${upper(replace(tenant, "-", "_"))}__${upper(replace(name, "-", "_"))}" => "${var.name}_${tenant}_${name}"
    }
  ]...)
  secrets_by_function = { execute = local.workflow_secrets, trigger = local.workflow_secrets, console = local.workflow_secrets }

  # Trigger accepts tokens that the console has sealed for `ebb login`.
  sign_in_secrets = var.sign_in == null ? {} : {
    EBB_SIGN_IN_CLIENT_SECRET = var.sign_in.client_secret
    EBB_SESSION_KEY           = var.sign_in.session_key
  }
  sign_in_by_function = { console = local.sign_in_secrets, trigger = local.sign_in_secrets }

  # A collector's API key, for example.
  otlp_secrets = try(var.otlp.headers_secret, null) == null ? {} : { EBB_OTLP_HEADERS = var.otlp.headers_secret }
}

resource "google_service_account" "function" {
  for_each = local.functions

  project      = var.project_id
  account_id   = "${var.name}-${each.key}"
  display_name = "Ebbflow: ${each.key}"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "function_reaches_database" {
  for_each = local.functions

  project = var.project_id
  role    = "roles/cloudsql.client"
  member  = google_service_account.function[each.key].member
}

resource "google_cloud_run_v2_service" "function" {
  for_each = local.functions

  project  = var.project_id
  location = var.region
  name     = "${var.name}-${each.key}"
  ingress  = !each.value.public ? "INGRESS_TRAFFIC_INTERNAL_ONLY" : var.domain == null ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  # Behind Identity-Aware Proxy, Cloud Run lets in nobody but the proxy.
  invoker_iam_disabled = each.value.public && !(var.iap && each.key == "console")
  iap_enabled          = var.iap && each.key == "console"
  custom_audiences     = [local.audiences[each.key]]
  # Services hold no data, and terraform must be able to replace one whose first revision did not start.
  deletion_protection = false
  labels              = { app = "ebbflow", installation = var.name, function = each.value.function }

  # For the service as a whole: a minimum in the template would keep instances of every tagged revision up.
  scaling {
    min_instance_count = each.value.min_instances
    max_instance_count = each.value.max_instances
  }

  template {
    service_account                  = google_service_account.function[each.key].email
    timeout                          = "${each.value.timeout}s"
    max_instance_request_concurrency = each.value.concurrency
    # Task processes need a full Linux; the other functions start faster without one.
    execution_environment = each.value.function == "execute" ? "EXECUTION_ENVIRONMENT_GEN2" : "EXECUTION_ENVIRONMENT_GEN1"

    scaling {
      max_instance_count = each.value.max_instances
    }

    vpc_access {
      egress = "PRIVATE_RANGES_ONLY"
      network_interfaces {
        network    = google_compute_network.this.id
        subnetwork = google_compute_subnetwork.functions.id
      }
    }

    volumes {
      name = "cloudsql"
      cloud_sql_instance {
        instances = [google_sql_database_instance.this.connection_name]
      }
    }

    containers {
      image = local.images[each.key]
      args  = ["serve", each.value.function]

      resources {
        limits = { cpu = each.value.cpu, memory = each.value.memory }
        # Billed only while a request is in progress.
        cpu_idle          = true
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = local.environment[each.key]
        content {
          name  = env.key
          value = env.value
        }
      }
      dynamic "env" {
        for_each = var.database.iam_login ? [] : ["with a password"]
        content {
          name = "DATABASE_URL"
          value_source {
            secret_key_ref {
              secret = google_secret_manager_secret.database_url.secret_id
              # Not `latest`, so that a new password creates a new revision.
              version = google_secret_manager_secret_version.database_url.version
            }
          }
        }
      }
      dynamic "env" {
        for_each = merge(
          lookup(local.secrets_by_function, each.value.function, {}),
          lookup(local.sign_in_by_function, each.value.function, {}),
          local.otlp_secrets,
        )
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }

      volume_mounts {
        name       = "cloudsql"
        mount_path = "/cloudsql"
      }

      # Succeeds with the first connection to the database, which may take more than a minute on a new instance. A revision
      # that cannot reach the database does not replace one that can.
      startup_probe {
        period_seconds    = 1
        timeout_seconds   = 1
        failure_threshold = 180
        http_get {
          path = "/started"
        }
      }
      # Also gives an idle instance CPU, in which it closes the connections that it does not use.
      liveness_probe {
        period_seconds    = 30
        timeout_seconds   = 5
        failure_threshold = 3
        http_get {
          path = "/livez"
        }
      }
    }
  }

  lifecycle {
    # cloudbuild.yaml deploys images and shifts traffic. It names no revisions: terraform would send an ignored name again
    # with a changed template, which Cloud Run rejects.
    ignore_changes = [client, client_version, template[0].containers[0].image, template[0].labels, traffic]
  }

  depends_on = [
    google_project_iam_member.function_reaches_database,
    google_project_iam_member.function_logs_in,
    google_sql_user.function,
    google_secret_manager_secret_iam_member.database_url,
    google_secret_manager_secret_iam_member.workflows,
    google_secret_manager_secret_iam_member.sign_in,
    google_secret_manager_secret_iam_member.otlp,
  ]
}

# With `otlp.google`, functions send metrics and spans to Google's own endpoint.
resource "google_project_iam_member" "function_sends_telemetry" {
  for_each = try(var.otlp.google, false) ? { for pair in setproduct(keys(local.functions), ["roles/telemetry.writer", "roles/serviceusage.serviceUsageConsumer"]) : join(" ", pair) => pair } : {}

  project = var.project_id
  role    = each.value[1]
  member  = google_service_account.function[each.value[0]].member
}
