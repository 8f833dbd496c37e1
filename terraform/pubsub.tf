# The topics that functions publish to, each with its dead-letter topic. The names, after the prefix, are those of
# `model::Topic`; a test compares them.

locals {
  topics = toset(concat(
    ["${var.name}-triggers", "${var.name}-evaluations", "${var.name}-management", "${var.name}-lifecycle"],
    [for queue in keys(local.queues) : "${var.name}-work-${queue}"],
  ))

  # Which function receives what. Of the lifecycle, trigger receives the ends of runs; add your own subscriptions as
  # you like.
  subscriptions = merge(
    {
      trigger           = "${var.name}-triggers"
      trigger-lifecycle = "${var.name}-lifecycle"
      evaluate          = "${var.name}-evaluations"
      sweep             = "${var.name}-management"
    },
    { for queue in keys(local.queues) : "execute-${queue}" => "${var.name}-work-${queue}" },
  )

  # The functions that settle commands, each in its own transaction, and publish what follows. Any command may let the next tasks
  # begin, request child runs, end or cancel others, arm a timer and end a run, so each publishes to all of these topics, and to
  # nothing else: not to dead-letter topics, and not to other topics of the project. A test compares this with the code.
  # Without `api` the console settles nothing: it only answers health checks.
  publishers = concat(["trigger", "evaluate", "execute", "sweep"], var.api == null ? [] : ["console"])

  # The function that a subscription pushes to, and the only message type it receives, if limited.
  receivers = { for name in keys(local.subscriptions) : name => name == "trigger-lifecycle" ? "trigger" : name }
  filters   = { trigger-lifecycle = "attributes.\"ce-type\" = \"dev.ebbflow.run.finished.v1\"" }

  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic" "topic" {
  for_each = local.topics

  project = var.project_id
  name    = each.value

  depends_on = [google_project_service.api]
}

resource "google_pubsub_topic" "dead_letters" {
  for_each = local.topics

  project = var.project_id
  name    = "${each.value}-dead-letters"

  depends_on = [google_project_service.api]
}

resource "google_pubsub_topic_iam_member" "function_publishes" {
  for_each = { for pair in setproduct([for name, function in local.functions : name if contains(local.publishers, function.function)], local.topics) : join(" ", pair) => pair }

  project = var.project_id
  topic   = google_pubsub_topic.topic[each.value[1]].name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.function[each.value[0]].member
}

# Callbacks run on the queue `light`, so no other worker may publish to your topics.
resource "google_pubsub_topic_iam_member" "execute_gives_notice" {
  for_each = var.notice_topics

  project = var.project_id
  topic   = each.value
  role    = "roles/pubsub.publisher"
  member  = google_service_account.function["execute-light"].member
}

# The account with which Pub/Sub and the scheduler call.
resource "google_service_account" "invoker" {
  project      = var.project_id
  account_id   = "${var.name}-invoker"
  display_name = "Ebbflow: pushes and ticks"

  depends_on = [google_project_service.api]
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = toset(values(local.receivers))

  project  = var.project_id
  location = var.region
  name     = google_cloud_run_v2_service.function[each.key].name
  role     = "roles/run.invoker"
  member   = google_service_account.invoker.member
}

resource "google_service_account_iam_member" "agent_signs" {
  service_account_id = google_service_account.invoker.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.pubsub_agent

  # The service agent exists once there is a topic.
  depends_on = [google_pubsub_topic.topic]
}

resource "google_pubsub_subscription" "push" {
  for_each = local.subscriptions

  project = var.project_id
  name    = "${var.name}-${each.key}"
  topic   = google_pubsub_topic.topic[each.value].id
  filter  = lookup(local.filters, each.key, null)
  # As long as a handler may take: a shorter deadline would redeliver the message while its handler runs.
  ack_deadline_seconds       = local.functions[local.receivers[each.key]].deadline
  message_retention_duration = "604800s"

  expiration_policy {
    ttl = ""
  }

  push_config {
    push_endpoint = "${google_cloud_run_v2_service.function[local.receivers[each.key]].uri}/push"
    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = local.audiences[local.receivers[each.key]]
    }
  }

  retry_policy {
    minimum_backoff = "1s"
    maximum_backoff = "60s"
  }

  # Generous, since an overloaded receiver uses up attempts, too.
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters[each.value].id
    max_delivery_attempts = 20
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker, google_service_account_iam_member.agent_signs]
}

# Without these two, dead letters silently never move.
resource "google_pubsub_subscription_iam_member" "agent_takes" {
  for_each = local.subscriptions

  project      = var.project_id
  subscription = google_pubsub_subscription.push[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

resource "google_pubsub_topic_iam_member" "agent_dead_letters" {
  for_each = local.topics

  project = var.project_id
  topic   = google_pubsub_topic.dead_letters[each.value].name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent

  depends_on = [google_pubsub_topic.topic]
}

# A dead-letter topic without a subscription drops its messages. Evaluate stores them for `ebb dead-letters`; while it
# cannot, they wait here for a month.
resource "google_pubsub_subscription" "dead_letters" {
  for_each = local.topics

  project                    = var.project_id
  name                       = "${each.value}-dead-letters"
  topic                      = google_pubsub_topic.dead_letters[each.value].id
  ack_deadline_seconds       = local.functions.evaluate.deadline
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }

  push_config {
    push_endpoint = "${google_cloud_run_v2_service.function["evaluate"].uri}/dead-letters"
    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = local.audiences.evaluate
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker, google_service_account_iam_member.agent_signs]
}
