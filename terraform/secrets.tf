# The database's address with its password, and the secrets of workflows.

resource "google_secret_manager_secret" "database_url" {
  project   = var.project_id
  secret_id = "${var.name}-database-url"

  replication {
    auto {}
  }

  depends_on = [google_project_service.api]
}

# Written after the user exists, so that a function that reads it can log in.
resource "google_secret_manager_secret_version" "database_url" {
  secret                 = google_secret_manager_secret.database_url.id
  secret_data_wo         = "postgres://${google_sql_user.functions.name}:${local.database_password}@localhost/${google_sql_database.this.name}?host=/cloudsql/${google_sql_database_instance.this.connection_name}"
  secret_data_wo_version = var.database.password_version

  # The previous version is removed once no serving revision uses it.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_secret_manager_secret_iam_member" "database_url" {
  # Functions that log in through IAM need no password, and may not read one. Here and elsewhere, keys must not come from resources:
  # `terraform import` into an empty state does not know these yet.
  for_each = merge(
    { for name in keys(local.functions) : name => google_service_account.function[name].member if !var.database.iam_login },
    { migrate = google_service_account.migrate.member },
  )

  project   = var.project_id
  secret_id = google_secret_manager_secret.database_url.secret_id
  role      = "roles/secretmanager.secretAccessor"
  member    = each.value
}

resource "google_secret_manager_secret_iam_member" "workflows" {
  for_each = {
    for pair in setproduct([for name, function in local.functions : name if contains(keys(local.secrets_by_function), function.function)], values(local.workflow_secrets)) : join(" ", pair) => pair
  }

  project   = var.project_id
  secret_id = each.value[1]
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.value[0]].member
}

resource "google_secret_manager_secret_iam_member" "sign_in" {
  for_each = merge([
    for name, secrets in local.sign_in_by_function : { for secret in values(secrets) : "${name} ${secret}" => { function = name, secret = secret } }
  ]...)

  project   = var.project_id
  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.value.function].member
}

resource "google_secret_manager_secret_iam_member" "otlp" {
  for_each = { for pair in setproduct(keys(local.functions), values(local.otlp_secrets)) : join(" ", pair) => pair }

  project   = var.project_id
  secret_id = each.value[1]
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.function[each.value[0]].member
}
