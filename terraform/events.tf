# Topics outside Ebbflow whose messages are events for workflow triggers.

resource "google_pubsub_subscription" "events" {
  for_each = var.event_topics

  project                    = var.project_id
  name                       = "${var.name}-events-${element(split("/", each.value), -1)}"
  topic                      = startswith(each.value, "projects/") ? each.value : "projects/${var.project_id}/topics/${each.value}"
  ack_deadline_seconds       = local.functions.trigger.deadline
  message_retention_duration = "604800s"

  expiration_policy {
    ttl = ""
  }

  push_config {
    push_endpoint = "${google_cloud_run_v2_service.function["trigger"].uri}/push"
    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = local.audiences.trigger
    }
  }

  retry_policy {
    minimum_backoff = "1s"
    maximum_backoff = "60s"
  }

  # Messages that trigger cannot handle join its own dead letters.
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters["${var.name}-triggers"].id
    max_delivery_attempts = 20
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker, google_service_account_iam_member.agent_signs]
}

# The service agent may already publish to that dead-letter topic.
resource "google_pubsub_subscription_iam_member" "agent_takes_events" {
  for_each = var.event_topics

  project      = var.project_id
  subscription = google_pubsub_subscription.events[each.value].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}
