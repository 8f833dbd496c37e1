# The database has no public address: functions reach it through a private network. They reach the internet directly.

resource "google_compute_network" "this" {
  project                 = var.project_id
  name                    = var.name
  auto_create_subnetworks = false

  depends_on = [google_project_service.api]
}

resource "google_compute_subnetwork" "functions" {
  project                  = var.project_id
  region                   = var.region
  name                     = "${var.name}-functions"
  network                  = google_compute_network.this.id
  ip_cidr_range            = var.subnet_range
  private_ip_google_access = true
}

resource "google_compute_global_address" "database" {
  project       = var.project_id
  name          = "${var.name}-database"
  network       = google_compute_network.this.id
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  prefix_length = 20
}

resource "google_service_networking_connection" "database" {
  network                 = google_compute_network.this.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.database.name]
  # Cloud SQL releases the peering hours after the instance is gone; it goes with the network.
  deletion_policy = "ABANDON"

  depends_on = [google_project_service.api]
}
