# The image registry, and the account that builds and deploys.

resource "google_artifact_registry_repository" "images" {
  project       = var.project_id
  location      = var.region
  repository_id = "ebbflow"
  format        = "DOCKER"
  description   = "Ebbflow's images."

  # Recent images stay for rollbacks; those older than a month are deleted.
  cleanup_policies {
    id     = "keep-recent"
    action = "KEEP"
    most_recent_versions {
      keep_count = 20
    }
  }
  cleanup_policies {
    id     = "delete-old"
    action = "DELETE"
    condition {
      older_than = "2592000s"
    }
  }

  depends_on = [google_project_service.api]
}

# The account of cloudbuild.yaml.
resource "google_service_account" "deployer" {
  project      = var.project_id
  account_id   = "ebbflow-deployer"
  display_name = "Ebbflow: builds, migrates, deploys"

  depends_on = [google_project_service.api]
}

resource "google_artifact_registry_repository_iam_member" "deployer_pushes" {
  project    = var.project_id
  location   = var.region
  repository = google_artifact_registry_repository.images.name
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.deployer.member
}

resource "google_project_iam_member" "deployer" {
  for_each = toset(["roles/run.developer", "roles/logging.logWriter", "roles/storage.objectViewer"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.deployer.member
}

# Deploying a service requires the right to act as its account.
resource "google_service_account_iam_member" "deployer_acts_as" {
  for_each = merge(
    { for name, account in google_service_account.function : name => account.name },
    { migrate = google_service_account.migrate.name },
  )

  service_account_id = each.value
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.deployer.member
}
