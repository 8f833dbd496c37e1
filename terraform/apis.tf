# The APIs that Ebbflow needs. The first two must be enabled by hand in an empty project, because terraform itself needs them
# to enable the others and to read the project.

resource "google_project_service" "api" {
  for_each = toset(concat([
    "cloudresourcemanager.googleapis.com",
    "serviceusage.googleapis.com",
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtrace.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "servicenetworking.googleapis.com",
    "sqladmin.googleapis.com",
    "storage.googleapis.com",
    ],
    var.wake == "tick" ? [] : ["cloudtasks.googleapis.com"],
    var.iap ? ["iap.googleapis.com"] : [],
    try(var.otlp.google, false) ? ["telemetry.googleapis.com"] : [],
  ))

  project = var.project_id
  service = each.value
  # Other things in the project may use it, too.
  disable_on_destroy = false
}

data "google_project" "this" {
  project_id = var.project_id

  depends_on = [google_project_service.api]
}
