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

# A dead-letter topic that nobody subscribes to forgets its letters.
resource "google_pubsub_subscription" "dead_letters" {
  for_each = local.topics

  project                    = var.project_id
  name                       = "${each.value}-dead-letters"
  topic                      = google_pubsub_topic.dead_letters[each.value].id
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }
}
