variables {
  project_id   = "some-project"
  image        = "us-central1-docker.pkg.dev/some-project/ebbflow/ebbflow:1"
  worker_image = "us-central1-docker.pkg.dev/some-project/ebbflow/ebbflow-worker:1"
  accounts     = ["ada@example.com"]
}

# What is only ever written is not sent anywhere.
override_resource {
  target = module.ebbflow.google_sql_user.functions
}
override_resource {
  target = module.ebbflow.google_secret_manager_secret_version.database_url
}

run "it_can_be_applied" {
  command = apply

  assert {
    condition     = length(output.ebbflow.urls) == 6
    error_message = "There are six services."
  }
}

run "a_pool_can_be_added" {
  command = plan

  variables {
    pools = { python = { token_secret = "worker-token", slots = 2 } }
  }

  assert {
    condition     = length(output.ebbflow.urls) == 6
    error_message = "A pool has no service, and the queues of the example stay."
  }
}
