"""Mistakes that have been made, or that are easily made, and what the test says when one is made again."""
import dataclasses
import pathlib

PAGE, RECOVERY, RUNBOOK = (f"docs/src/operations/{name}.md" for name in ("first-deploy", "disaster-recovery", "runbook"))


class Unplantable(Exception):
    """A mistake is out of date: its files say something else by now."""


@dataclasses.dataclass
class Mistake:
    name: str
    part: str  # of the test, which finds it
    file: str
    right: str
    wrong: str
    reported: str  # a pattern of what the test says
    also: tuple = ()  # a second place: file, right, wrong
    deploys: int = 2  # after which it shows

    def places(self):
        return [(self.file, self.right, self.wrong), *([self.also] if self.also else [])]

    def obstacles(self, repository):
        """Why it cannot be planted: a file that does not say what it replaces."""
        return [f"{self.name}: {name} does not say {right!r}" for name, right, _ in self.places() if right not in pathlib.Path(repository, name).read_text()]

    def plant(self, repository):
        if obstacles := self.obstacles(repository):
            raise Unplantable("\n".join(obstacles))
        for name, right, wrong in self.places():
            file = pathlib.Path(repository, name)
            file.write_text(file.read_text().replace(right, wrong, 1))


ALL = [
    Mistake("an image without rustfmt runs the gate", "page", "cloudbuild.yaml", "      rustup component add rustfmt clippy\n", "", "cargo-fmt"),
    Mistake("the first build runs the tests", "page", "cloudbuild.yaml", '[ "$_TEST" = yes ] || { echo "Not tested."; exit 0; }\n', "", "terraform is not installed"),
    Mistake("a first build that an advisory stops", "page", "cloudbuild.yaml", '      [ "$_TEST" = yes ] || { echo "Dependencies were not checked."; exit 0; }\n', "", "an advisory of today"),
    Mistake("a gate without terraform", "page", "cloudbuild.yaml", "PATH=$PWD/target/tools:$PATH GATE=complete", "GATE=complete", "terraform is not installed"),
    Mistake("an API that an empty project lacks", "page", "terraform/apis.tf", '    "sqladmin.googleapis.com",\n', "", "sqladmin.googleapis.com has not been used"),
    Mistake("APIs that cannot enable themselves", "page", PAGE, "cloudresourcemanager.googleapis.com ", "", "cloudresourcemanager.googleapis.com has not been used"),
    Mistake("an account that only gcloud creates", "page", PAGE, "gcloud beta services identity create --service=iap.googleapis.com --project=$PROJECT\n", "", "does not exist"),
    Mistake("a deployer who cannot read the source", "page", PAGE, "-target=module.ebbflow.google_storage_bucket_iam_member.deployer_reads_sources", "-target=module.ebbflow.google_storage_bucket.builds", "storage.objects.get"),
    Mistake("services before their images", "page", PAGE, "_TEST=no,_DEPLOY=no", "_TEST=no", "apply terraform|could not be found"),
    Mistake("a page without its project", "page", PAGE, "export CLOUDSDK_CORE_PROJECT=$PROJECT\n", "", "required property .project. is not currently set"),
    Mistake("a runbook without its project", "operation", RUNBOOK, "export CLOUDSDK_CORE_PROJECT=PROJECT ", "export ", "required property .project. is not currently set"),
    Mistake("first images in another region", "page", PAGE, "_REGION=$REGION,_TAG=first", "_TAG=first", 'Repository "ebbflow" not found in us-central1'),
    Mistake("a deploy in another region", "page", PAGE, "_REGION=$REGION,_TAG=second", "_TAG=second", 'Repository "ebbflow" not found in us-central1'),
    Mistake("terraform in another region than its images", "page", PAGE, " TF_VAR_region=$REGION", "", 'Repository "ebbflow" not found in europe-west1'),
    Mistake("a command of the module's that builds something else", "operation", "terraform/outputs.tf", "_NAME=${var.name},", "_NAME=${var.name}-app,", "build_command|does not exist"),
    Mistake("a page that promises the log of a build", "page", PAGE, "Waiting for build to complete.\n…\nSUCCESS\n```\n\n`_TAG`", "Step test\nSUCCESS\n```\n\n`_TAG`", "promises «Step test»"),
    Mistake("a page that promises something else", "page", PAGE, "No changes.", "Nothing to do.", "promises"),
    Mistake("revisions with names", "operation", "cloudbuild.yaml", "--no-traffic --quiet", '--tag="v-$_TAG" --no-traffic --quiet', "wants changes after a deploy"),
    Mistake(
        "revisions with names that terraform sends again", "operation", "cloudbuild.yaml", "--no-traffic --quiet", '--tag="v-$_TAG" --no-traffic --quiet', "Error 409",
        also=("terraform/functions.tf", "template[0].labels, traffic]", "template[0].labels, template[0].revision, traffic]"),
    ),
    Mistake(
        "a minimum for each revision", "operation", "terraform/functions.tf", "    scaling {\n      max_instance_count", "    scaling {\n      min_instance_count = each.value.min_instances\n      max_instance_count", "instances stay up"
    ),
    Mistake("tags for ever", "operation", "cloudbuild.yaml", '${old:+--remove-tags="$old"}', "", "those of old deploys", deploys=11),
    Mistake("no scaling of the service", "operation", "terraform/functions.tf", "  scaling {\n    min_instance_count = each.value.min_instances\n    max_instance_count = each.value.max_instances\n  }\n", "", "wants changes after the first apply"),
    Mistake("zeros in the dashboard", "operation", "terraform/dashboard.tf", "place % 2 == 0 ? {} : { xPos = 6 }", "{ xPos = 6 * (place % 2) }", "wants changes after the first apply"),
    Mistake("empty lists in the dashboard", "operation", "terraform/dashboard.tf", "length(local.charts[title].by) == 0 ? {} : { groupByFields", "false ? {} : { groupByFields", "wants changes after the first apply"),
    Mistake("a label that gcloud adds to the job", "operation", "terraform/migrate.tf", "template[0].labels, ", "", "wants changes after a deploy"),
    Mistake("images of terraform", "operation", "terraform/functions.tf", "template[0].containers[0].image, ", "", "wants changes after a deploy"),
    Mistake("a user who owns tables is dropped", "operation", "terraform/database.tf", '  # Postgres does not drop a user who owns tables or has privileges. Users go with the instance.\n  deletion_policy = "ABANDON"\n', "", "some objects depend on it"),
    Mistake("a database in use is dropped", "operation", "terraform/database.tf", '  # It goes with the instance. By itself it cannot be dropped while a function is connected.\n  deletion_policy = "ABANDON"\n', "", "accessed by other users"),
    Mistake("a peering in use is deleted", "operation", "terraform/network.tf", '  deletion_policy = "ABANDON"\n', "", "still using this connection"),
    Mistake("protected services", "operation", "terraform/functions.tf", "  deletion_protection = false", "  deletion_protection = true", "cannot be replaced"),
    Mistake("a startup probe that gives up early", "operation", "terraform/functions.tf", "failure_threshold = 180", "failure_threshold = 5", "startup probe gave up"),
    Mistake("event streams that are cut", "operation", "terraform/functions.tf", 'function = "console", timeout = 3600', 'function = "console", timeout = 60', "cuts event streams"),
    Mistake("a handler that outlives its deadline", "operation", "terraform/functions.tf", 'function = "evaluate", timeout = 60, deadline = 60', 'function = "evaluate", timeout = 300, deadline = 60', "delivers a message again"),
    Mistake("functions that do not know their limit", "operation", "terraform/functions.tf", "EBB_REQUEST_SECONDS = tostring(function.timeout)", 'EBB_REQUEST_SECONDS = "60"', "does not know that its requests end"),
    Mistake("a console that nobody can open", "operation", "terraform/examples/production/main.tf", "var.iap && var.sign_in == null", "false", "nobody can open the console"),
    Mistake("a proxy that may not call the console", "operation", "terraform/iap.tf", 'role     = "roles/run.invoker"\n  member   = local.iap_agent', 'role     = "roles/run.invoker"\n  member   = google_service_account.invoker.member', "may not call the console"),
    Mistake("a sweep that only ticks", "operation", "terraform/examples/production/main.tf", '  wake = "tasks"\n', "", "nothing wakes the sweep"),
    Mistake("an API for wake-ups that an empty project lacks", "page", "terraform/apis.tf", '"cloudtasks.googleapis.com"', '"storage.googleapis.com"', "cloudtasks.googleapis.com has not been used"),
    Mistake("a sweep that may not create tasks", "operation", "terraform/scheduler.tf", '"roles/cloudtasks.enqueuer"', '"roles/cloudtasks.viewer"', "may not create tasks"),
    Mistake(
        "a sweep that may not act as the caller", "operation", "terraform/scheduler.tf", '"roles/iam.serviceAccountUser"', '"roles/iam.serviceAccountViewer"', "may not act as the account whose token"
    ),
    Mistake("slow tasks that nobody notices", "operation", "terraform/examples/production/main.tf", "  otlp = { google = true }\n", "", "no alerts on .*slow tasks"),
    Mistake("functions with a password", "operation", "terraform/examples/production/main.tf", "iam_login = true", "iam_login = false", "logs in with a password"),
    Mistake("a login without its role", "operation", "terraform/database.tf", 'role    = "roles/cloudsql.instanceUser"', 'role    = "roles/cloudsql.viewer"', "may not log in without"),
    Mistake("a deployer who may not act as a service", "operation", "terraform/registry.tf", '"roles/iam.serviceAccountUser"', '"roles/iam.serviceAccountViewer"', "actAs"),
    Mistake("worker pools outside their track", "operation", "cloudbuild.yaml", "pools=$(gcloud beta run", "pools=$(gcloud run", "Invalid choice"),
    Mistake(
        "a drill that replaces a variable from a secret", "operation", "deploy/restore-drill", '"--update-env-vars: \\"PGPASSWORD=$password\\""',
        '"--update-env-vars: \\"DATABASE_URL=postgres://ebbflow:$password@$address/ebbflow?sslmode=require\\""', "already been set with a different type",
    ),
    Mistake("a drill that gives up on a clone", "operation", "deploy/restore-drill", " --async --format='value(name)'", "", "taking longer than expected"),
    Mistake("a drill that waits for five minutes", "operation", "deploy/restore-drill", " --timeout=unlimited", "", "taking longer than expected"),
    Mistake("a clone as protected as its original", "operation", "deploy/restore-drill", '    if gcloud sql instances patch "$clone" --no-deletion-protection --no-retain-backups-on-delete', '    if gcloud sql instances patch "$clone" --no-retain-backups-on-delete', "instance is protected"),
    Mistake("a clone whose backups stay", "operation", "deploy/restore-drill", '    if gcloud sql instances patch "$clone" --no-deletion-protection --no-retain-backups-on-delete', '    if gcloud sql instances patch "$clone" --no-deletion-protection', "backups of ebbflow-drill-"),
    Mistake("a clone that nobody deletes", "page", "deploy/restore-drill", "trap cleanup EXIT\n", "", "is still there, and billed|promises «Deleted"),
    Mistake("a token of an account that may not be used", "page", PAGE, "--role=roles/iam.serviceAccountTokenCreator", "--role=roles/iam.serviceAccountUser", "getOpenIdToken"),
    Mistake("a token for somebody else", "page", PAGE, "--audiences=ebbflow-api", "--audiences=ebbflow", "the token is not accepted"),
    Mistake("users of functions that stay behind", "restore", RECOVERY, "grep 'google_sql_user\\.'", "grep 'google_sql_user.functions'", "already exists in ebbflow-restored"),
    Mistake("a queue that wakes the sweep during a restore", "restore", RECOVERY, "   $ gcloud tasks queues pause ebbflow-wake --location=REGION --project=PROJECT\n", "", "ebbflow-wake still wakes"),
    Mistake("messages during a restore", "restore", RECOVERY, "gcloud pubsub subscriptions modify-push-config $subscription --push-endpoint=", "true", "still pushes"),
    Mistake("people during a restore", "restore", RECOVERY, "   $ gcloud run services update ebbflow-console --ingress=internal --region=REGION --project=PROJECT\n", "", "still reach ebbflow-console"),
    Mistake("a queue that nobody resumes", "restore", RECOVERY, "   $ gcloud tasks queues resume ebbflow-wake --location=REGION --project=PROJECT\n", "", "still paused"),
    Mistake("an instance that cannot be given up", "restore", RECOVERY, "$ gcloud sql instances patch ebbflow-restored --no-deletion-protection --project=PROJECT\n", "", "instance is protected"),
    Mistake("a lost region that returns", "region", RECOVERY, "gcloud iam service-accounts disable $account --project=PROJECT --quiet", "true", "beside its successor"),
    Mistake("images of a lost region", "region", RECOVERY, "TF_VAR_worker_image=us-west1-docker.pkg.dev/PROJECT/ebbflow-west/", "TF_VAR_worker_image=us-central1-docker.pkg.dev/PROJECT/ebbflow/", "us-central1 is unavailable"),
    Mistake("users of a backup", "region", RECOVERY, "   $ terraform apply\n   $ gcloud run jobs execute", "   $ gcloud run jobs execute", "password authentication failed"),
    Mistake("a replica that nobody promotes", "replica", RECOVERY, "gcloud sql instances promote-replica ebbflow-replica --project=PROJECT --quiet", "true", "on a read replica"),
    Mistake("a rollback by a label that nothing has", "operation", ".ci/rollback", "metadata.labels.installation", "metadata.labels.instalation", "no services"),
    Mistake("attempts that are longer than a push", "operation", "terraform/functions.tf", '"pool" : size.timeout_seconds}', '"pool" : 3600}', "accepts attempts of 3600 s on the queue light"),
    Mistake("queues that nobody knows", "page", "terraform/functions.tf", "EBB_QUEUES          = local.listed_queues\n", "", "accepts attempts of None s"),
    Mistake("a service that starts without its database", "operation", "terraform/functions.tf", 'path = "/started"', 'path = "/livez"', "before it reaches its database"),
    Mistake("an idle instance without probes", "page", "terraform/functions.tf", "period_seconds    = 30", "period_seconds    = 300", "keeps its connections while it is idle"),
    Mistake("a migration that lets nobody in", "page", "terraform/migrate.tf", "length(local.database_accounts) == 0", "true", "may use no table"),
    Mistake("the smallest installation with a password", "page", "terraform/examples/small/main.tf", "database = { iam_login = true }", "database = {}", "logs in with a password"),
    Mistake("the smallest installation with a sweep that only ticks", "page", "terraform/examples/small/main.tf", '  wake = "tasks"\n', "", "nothing wakes the sweep"),
    Mistake("the smallest installation without a console", "page", "terraform/examples/small/main.tf", "var.iap && var.sign_in == null", "false", "nobody can open the console"),
    Mistake("the smallest installation with instances that stay up", "page", "terraform/variables.tf", "min_instances = optional(number, 0)", "min_instances = optional(number, 1)", "instances stay up"),
    Mistake("processors that are billed while idle", "page", "terraform/functions.tf", "cpu_idle          = true", "cpu_idle          = false", "is billed while it handles no request"),
    Mistake("a tick every minute beside the queue", "page", "terraform/scheduler.tf", '"* * * * *" : "0 * * * *"', '"* * * * *" : "* * * * *"', "more than once an hour"),
    Mistake("metrics without a token", "operation", "terraform/functions.tf", 'EBB_OTLP_AUTH = "google", ', "", "sends its metrics without a token"),
    Mistake("metrics of no region", "operation", "terraform/functions.tf", ", EBB_REGION = var.region", "", "in which region"),
    Mistake("metrics that may not be sent", "operation", "terraform/functions.tf", '"roles/telemetry.writer"', '"roles/monitoring.metricWriter"', "without roles/telemetry.writer"),
    Mistake("metrics for an API that is not enabled", "operation", "terraform/apis.tf", '["telemetry.googleapis.com"]', "[]", "is not enabled"),
    Mistake("functions that publish to dead letters", "operation", "terraform/pubsub.tf", "  topic   = google_pubsub_topic.topic[each.value[1]].name", "  topic   = google_pubsub_topic.dead_letters[each.value[1]].name", "publishes to"),
    Mistake(
        "functions that publish anywhere", "operation", "terraform/functions.tf", '"roles/serviceusage.serviceUsageConsumer"]', '"roles/serviceusage.serviceUsageConsumer", "roles/pubsub.publisher"]', "may publish anywhere"
    ),
    Mistake("a pool before its secret", "page", PAGE, " | gcloud secrets create ebbflow-scripts-token --data-file=-", " >/dev/null", "Secret .*ebbflow-scripts-token. not found"),
    Mistake("a token with a line break", "page", PAGE, " | tr -d '\\n' |", " |", "ends with a line break"),
    Mistake("a workflow for a queue without workers", "page", PAGE, "queue: scripts, config", "queue: light, config", "has no pool"),
    Mistake("a workflow that is cut at its comma", "page", PAGE, '{command: "echo Hello, world!"}', '{command: echo "Hello, world!"}', "bash has no settings"),
    Mistake("a worker of another service", "page", "terraform/workers.tf", "EBB_URL = local.api_url", "EBB_URL = local.addresses.console", "leases tasks at .*ebbflow-console"),
    Mistake(
        "a worker that may reach the database", "page", "terraform/workers.tf", 'resource "google_cloud_run_v2_worker_pool" "worker" {',
        'resource "google_project_iam_member" "worker" {\n  for_each = local.pools\n  project  = var.project_id\n  role     = "roles/cloudsql.client"\n'
        '  member   = google_service_account.worker[each.key].member\n}\n\nresource "google_cloud_run_v2_worker_pool" "worker" {', "instead of its token alone"
    ),
    Mistake("an archive that goes with its installation", "operation", "terraform/archive.tf", "force_destroy               = false", "force_destroy               = true", "archived runs were deleted"),
    Mistake("an archive that nobody empties", "operation", PAGE, "`gcloud storage rm gs://", "`gcloud storage ls gs://", "does not say how to empty"),
    Mistake("an alert that is missing", "operation", "terraform/alerts.tf", "    database_disk = {", "    disk = {", "there are no alerts on"),
    Mistake("an alert for each failure of a rare workflow", "operation", "terraform/alerts.tf", '[10m])) >= 5"', '[10m])) >= 1"', "one failed run of one"),
    Mistake("an alert for a backlog", "operation", "terraform/alerts.tf", "response_code_class=\\\"2xx\\\"}[15m]", "}[15m]", "merely long pages"),
    Mistake("a critical alert that pages nobody", "operation", "terraform/alerts.tf", "? var.paging_channels : []", "? [] : []", "is CRITICAL, and goes to"),
    Mistake("an uptime check that Google answers", "operation", "terraform/alerts.tf", 'path         = "/alive"', 'path         = "/livez"', "Google's own front end"),
    Mistake("an uptime check that gives up early", "operation", "terraform/alerts.tf", 'timeout = "60s"', 'timeout = "10s"', "no time to reach its database"),
    Mistake("a log line for each push", "operation", "terraform/logs.tf", 'if !contains(["trigger", "console"], name)', 'if name == "sweep"', "is logged and billed"),
    Mistake("a name that installations share", "share", "terraform/scheduler.tf", 'name     = "${var.name}-wake"', 'name     = "ebbflow-wake"', "there is no queue|ebbflow-wake already exists"),
    Mistake("a deploy that finds another installation", "share", "cloudbuild.yaml", "metadata.labels.installation~^$_NAME\\$", "metadata.labels.installation=$_NAME", "denied on service account ebb-test"),
    Mistake("a rollback that finds another installation", "share", ".ci/rollback", "metadata.labels.installation~^$name\\$", "metadata.labels.installation=$name", "ebb-test-.* has no revision tagged"),
    Mistake(
        "a rollback that leaves pools behind", "share", ".ci/rollback", 'gcloud beta run worker-pools update "$pool"', 'true "$pool"', "ebb-test-worker-gpu runs .*:release-03 instead of :release-02"
    ),
    Mistake("an API that goes with an installation", "share", "terraform/apis.tf", "disable_on_destroy = false", "disable_on_destroy = true", "was disabled with another installation"),
    Mistake("pools that no deploy finds", "share", "terraform/workers.tf", 'installation = var.name, function = "worker"', 'function = "worker"', "ebb-test-worker-gpu runs"),
]


def outdated(repository):
    """The mistakes that cannot be planted any more. Reading a few files is enough to know, so every run of the test does it."""
    return [obstacle for mistake in ALL for obstacle in mistake.obstacles(repository)]
