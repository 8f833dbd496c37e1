# Migrates the database. Run it by hand the first time; cloudbuild.yaml runs it before every deploy.

resource "google_service_account" "migrate" {
  project      = var.project_id
  account_id   = "${var.name}-migrate"
  display_name = "Ebbflow: migrate"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "migrate_reaches_database" {
  project = var.project_id
  role    = "roles/cloudsql.client"
  member  = google_service_account.migrate.member
}

resource "google_cloud_run_v2_job" "migrate" {
  project             = var.project_id
  location            = var.region
  name                = "${var.name}-migrate"
  deletion_protection = false
  labels              = { app = "ebbflow", installation = var.name }

  template {
    template {
      service_account = google_service_account.migrate.email
      timeout         = "1800s"
      # A failed migration needs a person to look at it before another attempt.
      max_retries = 0

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
        image = var.image
        args  = ["migrate"]

        resources {
          limits = { cpu = "1", memory = "512Mi" }
        }

        env {
          name = "DATABASE_URL"
          value_source {
            secret_key_ref {
              secret  = google_secret_manager_secret.database_url.secret_id
              version = google_secret_manager_secret_version.database_url.version
            }
          }
        }

        # Accounts that log in through IAM own nothing: the migration lets them assume the role that owns the tables.
        dynamic "env" {
          for_each = length(local.database_accounts) == 0 ? [] : [join(",", values(local.database_accounts))]
          content {
            name  = "EBB_GRANT_TO"
            value = env.value
          }
        }

        volume_mounts {
          name       = "cloudsql"
          mount_path = "/cloudsql"
        }
      }
    }
  }

  lifecycle {
    # cloudbuild.yaml deploys images; gcloud adds a label to the template each time.
    ignore_changes = [client, client_version, template[0].labels, template[0].template[0].containers[0].image]
  }

  depends_on = [
    google_project_iam_member.migrate_reaches_database,
    google_sql_user.function,
    google_secret_manager_secret_iam_member.database_url,
  ]
}
