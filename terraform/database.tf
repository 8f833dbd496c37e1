# All state. Functions log in as one user, with a password that only Secret Manager holds, or with their own accounts.
# People log in with their own identity.

locals {
  # While one revision replaces another, both have instances.
  connections       = 2 * sum([for size in local.functions : size.max_instances * size.connections])
  database_instance = coalesce(var.database.instance, var.name)

  # For the migration, two people, and Postgres' superuser reserve.
  connections_besides = 6

  # Generated at every apply and not stored: it takes effect only if `password_version` has changed.
  database_password = "${uuid()}${uuid()}"
}

resource "google_sql_database_instance" "this" {
  project             = var.project_id
  region              = var.region
  name                = local.database_instance
  database_version    = "POSTGRES_${var.database.version}"
  deletion_protection = var.deletion_protection

  settings {
    edition                     = "ENTERPRISE"
    tier                        = var.database.tier
    availability_type           = var.database.high_availability ? "REGIONAL" : "ZONAL"
    disk_type                   = "PD_SSD"
    disk_size                   = var.database.disk_gb
    disk_autoresize             = true
    disk_autoresize_limit       = var.database.disk_limit_gb
    deletion_protection_enabled = var.deletion_protection
    # Backups outlive the instance. They are billed until somebody deletes them.
    retain_backups_on_delete = var.deletion_protection

    ip_configuration {
      ipv4_enabled    = false
      private_network = google_compute_network.this.id
      ssl_mode        = "ENCRYPTED_ONLY"
    }

    backup_configuration {
      enabled                        = true
      start_time                     = "03:00"
      point_in_time_recovery_enabled = true
      transaction_log_retention_days = 7
      backup_retention_settings {
        retained_backups = var.database.backups
      }
    }

    maintenance_window {
      day          = 7
      hour         = 4
      update_track = "stable"
    }

    insights_config {
      query_insights_enabled = true
    }

    database_flags {
      name  = "cloudsql.iam_authentication"
      value = "on"
    }
    database_flags {
      name  = "max_connections"
      value = tostring(var.database.max_connections)
    }
  }

  lifecycle {
    # The disk grows automatically, and a schedule may stop the instance.
    ignore_changes = [settings[0].disk_size, settings[0].activation_policy]

    precondition {
      condition     = local.connections + local.connections_besides <= var.database.max_connections
      error_message = "During a deploy the functions may open ${local.connections} connections, and ${local.connections_besides} more must stay free, but the database allows ${var.database.max_connections}. Lower max_instances or connections, or use a larger database with more max_connections."
    }
  }

  depends_on = [google_service_networking_connection.database]
}

resource "google_sql_database" "this" {
  project  = var.project_id
  instance = google_sql_database_instance.this.name
  name     = "ebbflow"

  # It goes with the instance. By itself it cannot be dropped while a function is connected.
  deletion_policy = "ABANDON"
}

resource "google_sql_user" "functions" {
  project             = var.project_id
  instance            = google_sql_database_instance.this.name
  name                = "ebbflow"
  password_wo         = local.database_password
  password_wo_version = var.database.password_version

  # Postgres does not drop a user who owns tables or has privileges. Users go with the instance.
  deletion_policy = "ABANDON"
}

# With `iam_login`, functions use their own accounts, with a token as the password. The migration lets them assume the role that
# owns the tables; they have no other rights.
locals {
  database_accounts = var.database.iam_login ? { for name, account in google_service_account.function : name => trimsuffix(account.email, ".gserviceaccount.com") } : {}
}

resource "google_sql_user" "function" {
  for_each = var.database.iam_login ? local.functions : {}

  project  = var.project_id
  instance = google_sql_database_instance.this.name
  name     = local.database_accounts[each.key]
  type     = "CLOUD_IAM_SERVICE_ACCOUNT"

  deletion_policy = "ABANDON"
}

resource "google_project_iam_member" "function_logs_in" {
  for_each = var.database.iam_login ? local.functions : {}

  project = var.project_id
  role    = "roles/cloudsql.instanceUser"
  member  = google_service_account.function[each.key].member
}

resource "google_sql_user" "people" {
  for_each = var.database_people

  project  = var.project_id
  instance = google_sql_database_instance.this.name
  name     = trimprefix(each.value, "group:")
  type     = startswith(each.value, "group:") ? "CLOUD_IAM_GROUP" : "CLOUD_IAM_USER"

  deletion_policy = "ABANDON"
}

resource "google_project_iam_member" "people_log_in" {
  for_each = { for pair in setproduct(var.database_people, ["roles/cloudsql.client", "roles/cloudsql.instanceUser"]) : join(" ", pair) => pair }

  project = var.project_id
  member  = startswith(each.value[0], "group:") ? each.value[0] : "user:${each.value[0]}"
  role    = each.value[1]
}

# Stops the instance at night, say: a stopped instance costs only its disk. Functions answer 503 meanwhile, and alerts about the
# database fire, so this is for installations that nobody relies on at that time. A message that arrives meanwhile is pushed 20
# times, which takes about a quarter of an hour. Then it is a dead letter, which waits for the database and for a person.
locals {
  database_hours = var.database_hours == null ? {} : {
    start = { schedule = var.database_hours.start, policy = "ALWAYS" }
    stop  = { schedule = var.database_hours.stop, policy = "NEVER" }
  }
}

resource "google_service_account" "database_hours" {
  count = var.database_hours == null ? 0 : 1

  project      = var.project_id
  account_id   = "${var.name}-hours"
  display_name = "Ebbflow: starts and stops the database"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "database_hours" {
  for_each = toset(var.database_hours == null ? [] : ["roles/cloudsql.editor"])

  project = var.project_id
  role    = each.value
  member  = one(google_service_account.database_hours[*].member)

  condition {
    title      = "${var.name} only"
    expression = "resource.name == 'projects/${var.project_id}/instances/${google_sql_database_instance.this.name}' && resource.service == 'sqladmin.googleapis.com'"
  }
}

resource "google_cloud_scheduler_job" "database_hours" {
  for_each = local.database_hours

  project          = var.project_id
  region           = var.region
  name             = "${var.name}-database-${each.key}"
  description      = "Lets the database ${each.key}."
  schedule         = each.value.schedule
  time_zone        = var.database_hours.time_zone
  attempt_deadline = "60s"

  # An operation on the instance may be under way.
  retry_config {
    retry_count          = 5
    min_backoff_duration = "60s"
  }

  http_target {
    http_method = "PATCH"
    uri         = "https://sqladmin.googleapis.com/v1/projects/${var.project_id}/instances/${google_sql_database_instance.this.name}"
    headers     = { "Content-Type" = "application/json" }
    body        = base64encode(jsonencode({ settings = { activationPolicy = each.value.policy } }))
    oauth_token {
      service_account_email = one(google_service_account.database_hours[*].email)
      scope                 = "https://www.googleapis.com/auth/sqlservice.admin"
    }
  }

  depends_on = [google_project_iam_member.database_hours]
}
