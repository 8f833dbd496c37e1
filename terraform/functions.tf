# One service per function, and one execute service per queue. All run the same program.

locals {
  functions = merge(
    {
      trigger = merge(var.functions.trigger, { function = "trigger", timeout = 60, public = var.api != null })
      # Also stores dead letters, of which many may come at once.
      evaluate = merge(var.functions.evaluate, { function = "evaluate", timeout = 60, public = false })
      # Stays up while timers are due soon.
      sweep   = merge(var.functions.sweep, { function = "sweep", timeout = 600, public = false })
      console = merge(var.functions.console, { function = "console", timeout = 60, public = var.api != null })
    },
    {
      for queue, size in var.queues : "execute-${queue}" => merge(size, { function = "execute", timeout = size.timeout_seconds, public = false })
    },
  )

  images = { for name, function in local.functions : name => function.function == "execute" ? coalesce(var.worker_image, var.image) : var.image }

  # Unlike addresses, these are known before the services exist, so a service can be given its own.
  audiences   = { for name in keys(local.functions) : name => "ebbflow-${name}-push" }
  console_url = coalesce(var.console_url, "https://ebbflow-console-${data.google_project.this.number}.${var.region}.run.app")

  api_environment = var.api == null ? {} : merge(
    {
      EBB_API_AUDIENCE = var.api.audience
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

  environment_by_function = {
    trigger  = local.api_environment
    evaluate = {}
    execute = merge(
      length(var.egress.only) == 0 ? {} : { EBB_EGRESS_ONLY = join(",", var.egress.only) },
      length(var.egress.allow) == 0 ? {} : { EBB_EGRESS_ALLOW = join(",", var.egress.allow) },
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
    )
    console = local.api_environment
  }

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
        RUST_LOG          = var.log_filter
      },
      local.environment_by_function[function.function],
      var.otlp_endpoint == null ? {} : { EBB_OTLP_ENDPOINT = var.otlp_endpoint },
      var.database.iam_login ? {
        EBB_DATABASE_LOGIN = "iam"
        DATABASE_URL       = "postgres://${urlencode(local.database_accounts[name])}@localhost/${google_sql_database.this.name}?host=/cloudsql/${google_sql_database_instance.this.connection_name}"
      } : {},
      { for queue in keys(var.queues) : "EBB_QUEUE" => queue if name == "execute-${queue}" },
    )
  }

  # The variable that holds a secret: for tasks in execute, for webhook signatures in trigger.
  workflow_secrets    = { for secret in var.workflow_secrets : "EBB_SECRET_${upper(replace(secret, "-", "_"))}" => secret }
  secrets_by_function = { execute = local.workflow_secrets, trigger = local.workflow_secrets }

  # Trigger accepts tokens that the console has sealed for `ebb login`.
  sign_in_secrets = var.sign_in == null ? {} : {
    EBB_SIGN_IN_CLIENT_SECRET = var.sign_in.client_secret
    EBB_SESSION_KEY           = var.sign_in.session_key
  }
  sign_in_by_function = { console = local.sign_in_secrets, trigger = local.sign_in_secrets }
}

resource "google_service_account" "function" {
  for_each = local.functions

  project      = var.project_id
  account_id   = "ebbflow-${each.key}"
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

  project              = var.project_id
  location             = var.region
  name                 = "ebbflow-${each.key}"
  ingress              = each.value.public ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  invoker_iam_disabled = each.value.public
  custom_audiences     = [local.audiences[each.key]]
  deletion_protection  = var.deletion_protection
  labels               = { app = "ebbflow", function = each.value.function }

  template {
    service_account                  = google_service_account.function[each.key].email
    timeout                          = "${each.value.timeout}s"
    max_instance_request_concurrency = each.value.concurrency
    # Task processes need a full Linux; the other functions start faster without one.
    execution_environment = each.value.function == "execute" ? "EXECUTION_ENVIRONMENT_GEN2" : "EXECUTION_ENVIRONMENT_GEN1"

    scaling {
      min_instance_count = each.value.min_instances
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

      # Not /readyz: while the database is unavailable, new instances should start and report it rather than be killed.
      startup_probe {
        period_seconds    = 1
        timeout_seconds   = 1
        failure_threshold = 60
        http_get {
          path = "/livez"
        }
      }
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
    # cloudbuild.yaml deploys images and shifts traffic.
    ignore_changes = [client, client_version, template[0].containers[0].image, template[0].labels, template[0].revision, traffic]
  }

  depends_on = [
    google_project_iam_member.function_reaches_database,
    google_project_iam_member.function_logs_in,
    google_sql_user.function,
    google_secret_manager_secret_iam_member.database_url,
    google_secret_manager_secret_iam_member.workflows,
    google_secret_manager_secret_iam_member.sign_in,
  ]
}
