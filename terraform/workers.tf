# Queues of kind `pool`: worker pools that lease tasks over the API and run them, however long they take. They may reach neither
# the database nor the bus: all that they have is a token with the role `worker`.

locals {
  pools = { for queue, size in var.queues : queue => size if size.kind == "pool" }
}

resource "google_service_account" "worker" {
  for_each = local.pools

  project      = var.project_id
  account_id   = "${var.name}-worker-${each.key}"
  display_name = "Ebbflow: worker of ${each.key}"

  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_iam_member" "worker_token" {
  for_each = local.pools

  project   = var.project_id
  secret_id = each.value.token_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.worker[each.key].member
}

resource "google_cloud_run_v2_worker_pool" "worker" {
  for_each = local.pools

  project  = var.project_id
  location = var.region
  name     = "${var.name}-worker-${each.key}"
  # Workers hold no data, and terraform must be able to replace a pool whose first revision did not start.
  deletion_protection = false
  labels              = { app = "ebbflow", installation = var.name, function = "worker" }

  scaling {
    scaling_mode          = "MANUAL"
    manual_instance_count = each.value.max_instances
  }

  template {
    service_account = google_service_account.worker[each.key].email

    containers {
      image = coalesce(var.worker_image, var.image)
      # Cloud Run kills an instance ten seconds after SIGTERM: by then its tasks must be handed back.
      args = concat(
        ["worker", "--queue", each.key, "--slots", tostring(each.value.slots), "--grace", "1", "--stop-grace", "5"],
        flatten([for key, value in each.value.labels : ["--label", "${key}=${value}"]]),
      )

      resources {
        limits = { cpu = each.value.cpu, memory = each.value.memory }
      }

      dynamic "env" {
        for_each = merge(
          { EBB_URL = local.api_url, RUST_LOG = var.log_filter, EBB_TASK_NETWORK = each.value.task_network },
          local.egress_environment,
        )
        content {
          name  = env.key
          value = env.value
        }
      }
      env {
        name = "EBB_TOKEN"
        value_source {
          secret_key_ref {
            secret  = each.value.token_secret
            version = "latest"
          }
        }
      }
    }
  }

  lifecycle {
    # cloudbuild.yaml deploys images.
    ignore_changes = [client, client_version, template[0].containers[0].image, template[0].labels]
  }

  depends_on = [google_secret_manager_secret_iam_member.worker_token]
}
