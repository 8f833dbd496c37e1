# The topics that functions publish to, each with one for what could not be delivered. The names are those of
# `model::Topic`; a test compares them.

locals {
  topics = toset(concat(
    ["ebbflow-triggers", "ebbflow-evaluations", "ebbflow-management", "ebbflow-lifecycle"],
    [for queue in var.queues : "ebbflow-work-${queue}"],
  ))
}

resource "google_pubsub_topic" "topic" {
  for_each = local.topics

  project = var.project_id
  name    = each.value
}

resource "google_pubsub_topic" "dead_letters" {
  for_each = local.topics

  project = var.project_id
  name    = "${each.value}-dead-letters"
}

# A dead-letter topic that nobody subscribes to forgets its letters. Where evaluate is deployed they are pushed to it,
# and it keeps them for `ebb dead-letters`.
resource "google_pubsub_subscription" "dead_letters" {
  for_each = local.topics

  project                    = var.project_id
  name                       = "${each.value}-dead-letters"
  topic                      = google_pubsub_topic.dead_letters[each.value].id
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }

  dynamic "push_config" {
    for_each = var.dead_letter_push == null ? [] : [var.dead_letter_push]
    content {
      push_endpoint = push_config.value.endpoint
      oidc_token {
        service_account_email = push_config.value.service_account
        audience              = push_config.value.audience
      }
    }
  }
}
