"""The gcloud command of the test. It knows the commands that this repository uses, with the flags that gcloud 528 has for
them (sdk.py compares both), and does to the project what gcloud would.

usage: gcloud.py PROJECT.json ARGUMENT...      as the account $DEPLOY_TEST_ACCOUNT, or else as an owner"""
import os
import re
import sys

import cloud_run
import cloud_sql
from language import kept, printed
from project import NUMBER, Project, Refused

# Commands, each with its flags besides --project and --quiet.
COMMANDS = {
    "auth print-identity-token": {"--audiences", "--include-email", "--impersonate-service-account"},
    "artifacts docker images describe": set(),
    "beta run worker-pools describe": {"--region", "--format"},
    "beta run worker-pools list": {"--region", "--filter", "--format"},
    "beta run worker-pools update": {"--region", "--image"},
    "iam service-accounts add-iam-policy-binding": {"--member", "--role"},
    "iam service-accounts create": set(),
    "iam service-accounts disable": set(),
    "iam service-accounts list": {"--filter", "--format"},
    "secrets create": {"--data-file"},
    "services enable": set(),
    "beta services identity create": {"--service"},
    "builds list": {"--limit", "--format"},
    "builds log": set(),
    "builds submit": {"--config", "--gcs-source-staging-dir", "--substitutions", "--machine-type"},
    "pubsub subscriptions list": {"--filter", "--format"},
    "pubsub subscriptions modify-push-config": {"--push-endpoint"},
    "run jobs update": {"--region", "--image"},
    "run jobs execute": {"--region", "--wait", "--update-env-vars", "--args"},
    "run services list": {"--region", "--filter", "--format"},
    "run services describe": {"--region", "--format"},
    "run services update": {"--region", "--image", "--no-traffic", "--tag", "--revision-suffix", "--ingress"},
    "run services update-traffic": {"--region", "--to-latest", "--to-tags", "--update-tags", "--set-tags", "--remove-tags", "--clear-tags"},
    "secrets versions add": {"--data-file"},
    "scheduler jobs pause": {"--location"},
    "scheduler jobs resume": {"--location"},
    "storage rm": set(),
    "sql backups list": {"--instance", "--filter", "--format"},
    "sql backups restore": {"--backup-instance", "--restore-instance", "--async", "--format"},
    "sql instances clone": {"--point-in-time", "--async", "--format"},
    "sql instances create": {"--master-instance-name", "--region", "--no-assign-ip"},
    "sql instances delete": set(),
    "sql instances describe": {"--format"},
    "sql instances list": {"--filter", "--format"},
    "sql instances patch": {"--no-deletion-protection", "--no-retain-backups-on-delete"},
    "sql instances promote-replica": set(),
    "sql operations wait": {"--timeout"},
    "sql users set-password": {"--instance", "--password"},
    "tasks queues pause": {"--location"},
    "tasks queues resume": {"--location"},
}

# Those that act on no project, or on one that their arguments name.
WITHOUT_PROJECT = {"auth print-identity-token", "artifacts docker images describe"}


def with_flags_file(arguments):
    """The arguments, with those that a file has instead of the command line, as a name and a text on each line."""
    if "--flags-file=-" not in arguments:
        return arguments
    flags = [re.fullmatch(r'(--[a-z-]+): "(.*)"', line).groups() for line in sys.stdin.read().splitlines()]
    return [argument for argument in arguments if argument != "--flags-file=-"] + [f"{name}={value}" for name, value in flags]


class Call:
    def __init__(self, arguments):
        arguments = with_flags_file(arguments)
        words = [argument for argument in arguments if not argument.startswith("--")]
        self.command = next((name for name in sorted(COMMANDS, key=len, reverse=True) if words[: len(name.split())] == name.split()), None)
        if self.command is None:
            raise Refused(f"Invalid choice: {' '.join(words)}")
        self.names = words[len(self.command.split()) :]
        self.flags = dict(argument.partition("=")[::2] for argument in arguments if argument.startswith("--"))
        unknown = self.flags.keys() - COMMANDS[self.command] - {"--project", "--quiet"}
        if unknown:
            raise Refused(f"unrecognized arguments: {' '.join(sorted(unknown))}")
        self.account = os.environ.get("DEPLOY_TEST_ACCOUNT")
        self.region = self.flags.get("--region") or self.flags.get("--location")
        self.project = self.flags.get("--project") or os.environ.get("CLOUDSDK_CORE_PROJECT")
        # Before the project is opened: what comes through a pipe may have to open it, too.
        self.data = sys.stdin.read() if self.flags.get("--data-file") == "-" else None
        if not self.project and self.command not in WITHOUT_PROJECT:
            raise Refused("The required property [project] is not currently set.")

    def map(self, flag):
        return dict(pair.split("=", 1) for pair in self.flags.get(flag, "").split(",") if pair)

    def print_each(self, resources):
        """Prints the resources that the filter keeps, in the format that is asked for."""
        for resource in resources:
            if kept(resource, self.flags["--filter"]):
                print(printed(resource, self.flags["--format"]))


def services_enable(project, call):
    project.state["apis"] = sorted({*project.state["apis"], *call.names})
    print(f'Operation "operations/acat.p2-123456789012-{project.next_number()}" finished successfully.')


def beta_services_identity_create(project, call):
    project.require_api("serviceusage")
    agent = "gcp-sa-" + call.flags["--service"].split(".")[0]
    project.state["agents"] = sorted({*project.state["agents"], agent})
    print(f"Service identity created: service-123456789012@{agent}.iam.gserviceaccount.com")


def paused(kind, state):
    def change(project, call):
        found = project.find(kind, name=call.names[0])
        if found is None or call.region not in (found.get("region"), found.get("location")):
            raise Refused(f"NOT_FOUND: {call.names[0]} in {call.region}")
        project.state["paused"] = sorted({*project.state["paused"], found["id"]} if state else {*project.state["paused"]} - {found["id"]})

    return change


scheduler_jobs_pause, scheduler_jobs_resume = (paused("google_cloud_scheduler_job", state) for state in (True, False))
tasks_queues_pause, tasks_queues_resume = (paused("google_cloud_tasks_queue", state) for state in (True, False))


def pubsub_subscriptions_list(project, call):
    call.print_each(
        {"name": f"projects/{subscription['project']}/subscriptions/{subscription['name']}", "pushConfig": {"oidcToken": {"serviceAccountEmail": token["service_account_email"]}}}
        for subscription in project.of_type("google_pubsub_subscription")
        for push in subscription["push_config"]
        for token in push["oidc_token"]
    )


def pubsub_subscriptions_modify_push_config(project, call):
    subscription = project.find("google_pubsub_subscription", name=call.names[0].rpartition("/")[2])
    if subscription is None or call.flags["--push-endpoint"]:
        raise Refused(f"the test does not know what to change of {call.names[0]}")
    subscription["push_config"] = []


def secrets_create(project, call):
    project.require_api("secretmanager")
    if project.secret(call.names[0]) is not None:
        raise Refused(f"ALREADY_EXISTS: Secret [projects/{NUMBER}/secrets/{call.names[0]}] already exists.")
    project.state["secrets"][call.names[0]] = []
    secrets_versions_add(project, call)


def secrets_versions_add(project, call):
    versions = project.state["secrets"].get(call.names[0])
    if versions is None:
        raise Refused(f"NOT_FOUND: Secret [projects/{NUMBER}/secrets/{call.names[0]}] not found.")
    versions.append(call.data)
    print(f"Created version [{len(versions)}] of the secret [{call.names[0]}].")


def storage_rm(project, call):
    """Removes what is below an address that ends with `/**`."""
    folder = call.names[0].removeprefix("gs://").removesuffix("**")
    project.state["objects"] = [name for name in project.state["objects"] if not name.startswith(folder)]


def iam_service_accounts_create(project, call):
    project.require_api("iam")
    project.state["accounts"].append(f"{call.names[0]}@{call.project}.iam.gserviceaccount.com")
    print(f"Created service account [{call.names[0]}].")


def iam_service_accounts_add_iam_policy_binding(project, call):
    if call.names[0] not in project.state["accounts"]:
        raise Refused(f"NOT_FOUND: service account {call.names[0]} does not exist")
    project.state["impersonators"].append([call.flags["--member"], call.flags["--role"], call.names[0]])
    print(f"Updated IAM policy for serviceAccount [{call.names[0]}].")


def iam_service_accounts_list(project, call):
    call.print_each({"email": account["email"]} for account in project.of_type("google_service_account"))


def iam_service_accounts_disable(project, call):
    account = project.find("google_service_account", email=call.names[0])
    if account is None:
        raise Refused(f"NOT_FOUND: service account {call.names[0]} does not exist")
    account["disabled"] = True


def auth_print_identity_token(project, call):
    """Only a service account has tokens for an audience of one's choice, and even an owner needs a role to use one."""
    account = call.flags.get("--impersonate-service-account")
    if account is None:
        raise Refused("Invalid account type for `--audiences`. Requires valid service account.")
    project.require_api("iamcredentials")
    if ["user:ada@example.com", "roles/iam.serviceAccountTokenCreator", account] not in project.state["impersonators"]:
        raise Refused("PERMISSION_DENIED: Permission 'iam.serviceAccounts.getOpenIdToken' denied")
    print(f"{account} {call.flags['--audiences']}" if "--include-email" in call.flags else call.flags["--audiences"])


def main():
    project_file, *arguments = sys.argv[1:]
    try:
        call = Call(arguments)
        if call.command.startswith("builds "):
            import build  # It needs a package that the other commands, which are called often, do without.

            return getattr(build, call.command.replace(" ", "_"))(Project(project_file), call) or 0
        with Project(project_file).opened() as project:
            name = call.command.replace(" ", "_").replace("-", "_")
            project.require_region(call.region)
            return {**vars(cloud_run), **vars(cloud_sql), **globals()}[name](project, call) or 0
    except Refused as refusal:
        print(f"ERROR: (gcloud.{'.'.join(arguments[:3])}) {refusal}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
