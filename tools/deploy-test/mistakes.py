"""Mistakes that have been made, or that are easily made, and what the test says when one is made again."""
import dataclasses
import pathlib

PAGE = "docs/src/operations/first-deploy.md"


@dataclasses.dataclass
class Mistake:
    name: str
    part: str  # of the test, which finds it
    file: str
    right: str
    wrong: str
    told: str  # a pattern of what the test says
    also: tuple = ()  # a second place: file, right, wrong
    deploys: int = 2  # after which it shows

    def plant(self, repository):
        for name, right, wrong in [(self.file, self.right, self.wrong), *([self.also] if self.also else [])]:
            file = pathlib.Path(repository, name)
            text = file.read_text()
            if right not in text:
                raise ValueError(f"{self.name}: {name} does not say {right!r}")
            file.write_text(text.replace(right, wrong, 1))


ALL = [
    Mistake("an image without rustfmt runs the gate", "page", "cloudbuild.yaml", "      rustup component add rustfmt clippy\n", "", "cargo-fmt"),
    Mistake("the first build runs the tests", "page", "cloudbuild.yaml", '[ "$_TEST" = yes ] ||', "true ||", "Not tested"),
    Mistake("an API that an empty project lacks", "page", "terraform/apis.tf", '    "sqladmin.googleapis.com",\n', "", "sqladmin.googleapis.com has not been used"),
    Mistake("APIs that cannot enable themselves", "page", PAGE, "cloudresourcemanager.googleapis.com ", "", "cloudresourcemanager.googleapis.com has not been used"),
    Mistake("an account that only gcloud creates", "page", PAGE, "gcloud beta services identity create --service=iap.googleapis.com --project=$PROJECT\n", "", "does not exist"),
    Mistake("a deployer who cannot read the source", "page", PAGE, "-target=module.ebbflow.google_storage_bucket_iam_member.deployer_reads_sources", "-target=module.ebbflow.google_storage_bucket.builds", "storage.objects.get"),
    Mistake("services before their images", "page", PAGE, "_TEST=no,_DEPLOY=no", "_TEST=no", "apply terraform|could not be found"),
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
    Mistake("a startup probe without patience", "operation", "terraform/functions.tf", "failure_threshold = 180", "failure_threshold = 5", "startup probe gave up"),
    Mistake("event streams that are cut", "operation", "terraform/functions.tf", 'function = "console", timeout = 3600', 'function = "console", timeout = 60', "cuts event streams"),
    Mistake("a handler that outlives its deadline", "operation", "terraform/functions.tf", 'function = "evaluate", timeout = 60, deadline = 60', 'function = "evaluate", timeout = 300, deadline = 60', "delivers a message again"),
    Mistake("functions that do not know their limit", "operation", "terraform/functions.tf", "EBB_REQUEST_SECONDS = tostring(function.timeout)", 'EBB_REQUEST_SECONDS = "60"', "does not know that its requests end"),
    Mistake("a console that nobody can open", "operation", "terraform/examples/production/main.tf", "var.iap && var.sign_in == null", "false", "nobody can open the console"),
    Mistake("a proxy that may not call the console", "operation", "terraform/iap.tf", 'role     = "roles/run.invoker"\n  member   = local.iap_agent', 'role     = "roles/run.invoker"\n  member   = google_service_account.invoker.member', "may not call the console"),
    Mistake("a deployer who may not act as a service", "operation", "terraform/registry.tf", '"roles/iam.serviceAccountUser"', '"roles/iam.serviceAccountViewer"', "actAs"),
    Mistake("a rollback by a label that nothing has", "operation", ".ci/rollback", "metadata.labels.installation", "metadata.labels.instalation", "no services"),
]
