# Variables that cannot work are refused before anything is applied.

provider "google" {}

# What is only ever written is not sent anywhere.
override_resource {
  target = google_sql_user.functions
}
override_resource {
  target = google_secret_manager_secret_version.database_url
}

variables {
  project_id = "some-project"
  image      = "us-central1-docker.pkg.dev/some-project/ebbflow/ebbflow:1"
}

run "the_defaults_are_enough" {
  command = plan

  assert {
    condition     = alltrue([for service in google_cloud_run_v2_service.function : service.scaling[0].min_instance_count == 0])
    error_message = "By default everything scales to zero."
  }
}

run "more_connections_than_the_database_takes_are_refused" {
  command = plan

  variables {
    queues = { light = { max_instances = 10 } }
  }

  expect_failures = [google_sql_database_instance.this]
}

run "callbacks_need_their_queue" {
  command = plan

  variables {
    queues = { heavy = {} }
  }

  expect_failures = [var.queues]
}

run "a_queue_has_a_name_that_an_account_can_have" {
  command = plan

  variables {
    queues = { light = {}, a-name-that-is-too-long = {} }
  }

  expect_failures = [var.queues]
}

run "no_attempt_is_longer_than_a_push" {
  command = plan

  variables {
    queues = { light = { timeout_seconds = 601 } }
  }

  expect_failures = [var.queues]
}

run "an_attempt_has_time_before_its_request_ends" {
  command = plan

  variables {
    queues = { light = {}, quick = { timeout_seconds = 29 } }
  }

  expect_failures = [var.queues]
}

run "every_function_has_a_size" {
  command = plan

  variables {
    functions = { trigger = {}, evaluate = {}, sweep = {} }
  }

  expect_failures = [var.functions]
}

run "an_image_has_a_tag" {
  command = plan

  variables {
    image = "ebbflow"
  }

  expect_failures = [var.image]
}

run "an_api_is_for_somebody" {
  command = plan

  variables {
    api = { accounts = [] }
  }

  expect_failures = [var.api]
}

run "an_issuer_has_keys" {
  command = plan

  variables {
    api = { accounts = ["@example.com"], issuer = "https://issuer.example.com" }
  }

  expect_failures = [var.api]
}

run "a_region_is_no_zone" {
  command = plan

  variables {
    region = "europe-west3-a"
  }

  expect_failures = [var.region]
}

run "a_subnet_has_room" {
  command = plan

  variables {
    subnet_range = "10.0.0.0/28"
  }

  expect_failures = [var.subnet_range]
}

run "backups_reach_as_far_back_as_the_log" {
  command = plan

  variables {
    database = { backups = 3 }
  }

  expect_failures = [var.database]
}

run "what_has_ended_is_kept_for_at_least_a_day" {
  command = plan

  variables {
    retention_days = { logs = 0 }
  }

  expect_failures = [var.retention_days]
}

run "an_archive_keeps_things_for_a_while" {
  command = plan

  variables {
    archive = { keep_days = 0 }
  }

  expect_failures = [var.archive]
}

run "topics_of_others_are_not_our_own" {
  command = plan

  variables {
    event_topics = ["ebbflow-triggers"]
  }

  expect_failures = [var.event_topics]
}

run "nobody_signs_in_where_there_is_no_api" {
  command = plan

  variables {
    sign_in = { client_id = "console-client", client_secret = "console-client-secret", session_key = "console-session-key" }
  }

  expect_failures = [var.sign_in]
}

run "requests_go_to_hosts_and_ranges" {
  command = plan

  variables {
    egress = { allow = ["https://partner.example, other.example"] }
  }

  expect_failures = [var.egress]
}

run "a_name_leaves_room_for_the_queues" {
  command = plan

  variables {
    name   = "ebbflow-test"
    queues = { light = {}, fourteen-chars = {} }
  }

  expect_failures = [var.queues]
}

run "nobody_passes_the_proxy_where_there_is_no_api" {
  command = plan

  variables {
    iap = true
  }

  expect_failures = [var.iap]
}

run "the_smallest_machine_has_too_few_connections" {
  command = plan

  variables {
    database = { tier = "db-f1-micro", max_connections = 25 }
  }

  expect_failures = [var.database]
}

run "tokens_of_google_go_to_google" {
  command = plan

  variables {
    otlp = { endpoint = "https://collector.example.com", google = true }
  }

  expect_failures = [var.otlp]
}

run "wake_is_one_of_two" {
  command = plan

  variables {
    wake = "cron"
  }

  expect_failures = [var.wake]
}

run "a_tenant_cannot_be_taken_for_another" {
  command = plan

  variables {
    workflow_secrets = { "acme_north" = ["key"] }
  }

  expect_failures = [var.workflow_secrets]
}

run "two_secrets_do_not_share_a_variable" {
  command = plan

  variables {
    workflow_secrets = { acme = ["api-key", "API_KEY"] }
  }

  expect_failures = [var.workflow_secrets]
}

run "a_secret_is_not_a_path" {
  command = plan

  variables {
    workflow_secrets = { acme = ["../key"] }
  }

  expect_failures = [var.workflow_secrets]
}

run "a_pool_needs_a_token" {
  command = plan

  variables {
    api    = { accounts = ["@example.com"] }
    queues = { light = {}, gpu = { kind = "pool" } }
  }

  expect_failures = [var.queues]
}

run "a_pool_needs_the_api" {
  command = plan

  variables {
    queues = { light = {}, gpu = { kind = "pool", token_secret = "token" } }
  }

  expect_failures = [var.queues]
}

# The longest login is 30 + 1 + 30 + 4 characters, and Postgres would cut it.
run "a_login_is_a_name_that_postgres_can_have" {
  command = plan

  variables {
    project_id = "a-project-id-of-thirty-letters"
    name       = "twelve-chars"
    queues     = { light = {}, longqueue = {} }
    database   = { iam_login = true }
  }

  expect_failures = [var.database]
}

run "a_password_has_no_such_limit" {
  command = plan

  variables {
    project_id = "a-project-id-of-thirty-letters"
    name       = "twelve-chars"
    queues     = { light = {}, longqueue = {} }
  }
}

run "no_instance_waits_all_night_for_its_database" {
  command = plan

  variables {
    database_hours = { start = "0 7 * * 1-5", stop = "0 20 * * 1-5" }
    queues         = { light = { min_instances = 1 } }
  }

  expect_failures = [var.database_hours]
}
