# The image registry, and the account that builds and deploys.

resource "google_artifact_registry_repository" "images" {
  project       = var.project_id
  location      = var.region
  repository_id = var.name
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
  account_id   = "${var.name}-deployer"
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
  for_each = toset(["roles/run.developer", "roles/logging.logWriter"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.deployer.member
}

# The sources of builds: `gcloud builds submit --gcs-source-staging-dir`. The bucket that gcloud would use otherwise is not
# known to terraform, and reading it would take a role on the whole project.
resource "google_storage_bucket" "builds" {
  project                     = var.project_id
  name                        = "${var.project_id}-${var.name}-builds"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = { app = "ebbflow", installation = var.name }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age = 7
    }
  }

  depends_on = [google_project_service.api]
}

resource "google_storage_bucket_iam_member" "deployer_reads_sources" {
  bucket = google_storage_bucket.builds.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.deployer.member
}

# Builds and deploys every commit on a branch, if a repository is connected.
resource "google_cloudbuild_trigger" "deploy" {
  for_each = var.build_trigger == null ? {} : { this = var.build_trigger }

  project         = var.project_id
  location        = var.region
  name            = "${var.name}-deploy"
  description     = "Tests, builds, migrates and deploys Ebbflow."
  filename        = "cloudbuild.yaml"
  service_account = google_service_account.deployer.id
  substitutions   = { _NAME = var.name, _REGION = var.region, _TAG = "$SHORT_SHA" }

  repository_event_config {
    repository = each.value.repository
    push {
      branch = each.value.branch
    }
  }

  depends_on = [google_project_service.api]
}

# Deploying a service requires the right to act as its account.
resource "google_service_account_iam_member" "deployer_acts_as" {
  for_each = merge(
    { for name in keys(local.functions) : name => google_service_account.function[name].name },
    { for queue in keys(local.pools) : "worker-${queue}" => google_service_account.worker[queue].name },
    { migrate = google_service_account.migrate.name },
  )

  service_account_id = each.value
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.deployer.member
}
