# A load balancer with names and certificates of your own, if `domain` is set: one for the console, one for the API and
# webhooks. Cloud Run then accepts no other requests from outside, and Cloud Armor limits how many a client may send.

locals {
  fronted = var.domain == null ? {} : { console = var.domain.console, trigger = var.domain.api }
}

resource "google_compute_global_address" "front" {
  count = var.domain == null ? 0 : 1

  project = var.project_id
  name    = "${var.name}-front"

  depends_on = [google_project_service.api]
}

resource "google_compute_region_network_endpoint_group" "front" {
  for_each = local.fronted

  project               = var.project_id
  region                = var.region
  name                  = "${var.name}-${each.key}"
  network_endpoint_type = "SERVERLESS"
  cloud_run {
    service = google_cloud_run_v2_service.function[each.key].name
  }
}

resource "google_compute_security_policy" "front" {
  count = var.domain == null ? 0 : 1

  project = var.project_id
  name    = "${var.name}-front"

  rule {
    action      = "throttle"
    priority    = 1000
    description = "Limits each client."
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
    rate_limit_options {
      conform_action = "allow"
      exceed_action  = "deny(429)"
      enforce_on_key = "IP"
      rate_limit_threshold {
        count        = var.domain.requests_per_minute
        interval_sec = 60
      }
    }
  }
  rule {
    action      = "allow"
    priority    = 2147483647
    description = "The default."
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
  }

  depends_on = [google_project_service.api]
}

resource "google_compute_backend_service" "front" {
  for_each = local.fronted

  project               = var.project_id
  name                  = "${var.name}-${each.key}"
  protocol              = "HTTPS"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  security_policy       = google_compute_security_policy.front[0].id
  backend {
    group = google_compute_region_network_endpoint_group.front[each.key].id
  }
}

resource "google_compute_url_map" "front" {
  count = var.domain == null ? 0 : 1

  project         = var.project_id
  name            = "${var.name}-front"
  default_service = google_compute_backend_service.front["console"].id

  dynamic "host_rule" {
    for_each = local.fronted
    content {
      hosts        = [host_rule.value]
      path_matcher = host_rule.key
    }
  }
  dynamic "path_matcher" {
    for_each = local.fronted
    content {
      name            = path_matcher.key
      default_service = google_compute_backend_service.front[path_matcher.key].id
    }
  }
}

# It becomes valid once both names resolve to the address, which may take an hour.
resource "google_compute_managed_ssl_certificate" "front" {
  count = var.domain == null ? 0 : 1

  project = var.project_id
  name    = "${var.name}-front-${substr(sha1(join(",", values(local.fronted))), 0, 8)}"
  managed {
    domains = values(local.fronted)
  }

  lifecycle {
    create_before_destroy = true
  }
  depends_on = [google_project_service.api]
}

resource "google_compute_target_https_proxy" "front" {
  count = var.domain == null ? 0 : 1

  project          = var.project_id
  name             = "${var.name}-front"
  url_map          = google_compute_url_map.front[0].id
  ssl_certificates = [google_compute_managed_ssl_certificate.front[0].id]
}

resource "google_compute_global_forwarding_rule" "front" {
  count = var.domain == null ? 0 : 1

  project               = var.project_id
  name                  = "${var.name}-front"
  target                = google_compute_target_https_proxy.front[0].id
  ip_address            = google_compute_global_address.front[0].id
  port_range            = "443"
  load_balancing_scheme = "EXTERNAL_MANAGED"
}
