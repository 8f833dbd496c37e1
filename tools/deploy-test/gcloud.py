"""The gcloud command of the test. It knows the commands that this repository uses, with the flags that gcloud 528 has for
them, and does to the project what gcloud would.

usage: gcloud.py PROJECT.json ARGUMENT...      as the account $DEPLOY_TEST_ACCOUNT, or else as an owner"""
import os
import re
import sys

from project import Project, Refused

# Commands, each with its flags besides --project and --quiet.
COMMANDS = {
    "services enable": set(),
    "beta services identity create": {"--service"},
    "builds submit": {"--config", "--gcs-source-staging-dir", "--substitutions", "--machine-type"},
    "run jobs update": {"--region", "--image"},
    "run jobs execute": {"--region", "--wait", "--update-env-vars"},
    "run services list": {"--region", "--filter", "--format"},
    "run services describe": {"--region", "--format"},
    "run services update": {"--region", "--image", "--no-traffic", "--tag", "--revision-suffix"},
    "run services update-traffic": {"--region", "--to-latest", "--to-tags", "--update-tags", "--set-tags", "--remove-tags", "--clear-tags"},
    "sql instances clone": {"--point-in-time"},
    "sql instances describe": {"--format"},
    "sql instances delete": set(),
    "sql users set-password": {"--instance", "--password"},
}
TRAFFIC = 'value(status.traffic.map().format("{0}={1}",revisionName,tag).flatten())'


class Call:
    def __init__(self, arguments):
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

    def map(self, flag):
        return dict(pair.split("=") for pair in self.flags.get(flag, "").split(",") if pair)


def service_named(project, name):
    found = project.find("google_cloud_run_v2_service", name=name)
    if found is None:
        raise Refused(f"Cannot find service [{name}]")
    return found


def require_deployer(project, call, account):
    """The account that deploys needs a role on the project, and the right to act as the account of what is deployed."""
    if call.account is None:
        return
    if not project.granted("google_project_iam_member", "roles/run.developer", call.account):
        raise Refused(f"PERMISSION_DENIED: {call.account} may not deploy")
    acting = project.granted("google_service_account_iam_member", "roles/iam.serviceAccountUser", call.account, service_account_id=f"projects/{project.project_id()}/serviceAccounts/{account}")
    if not acting:
        raise Refused(f"Permission 'iam.serviceaccounts.actAs' denied on service account {account}")


def services_enable(project, call):
    project.state["apis"] = sorted({*project.state["apis"], *call.names})


def beta_services_identity_create(project, call):
    project.require_api("serviceusage")
    agent = "gcp-sa-" + call.flags["--service"].split(".")[0]
    project.state["agents"] = sorted({*project.state["agents"], agent})
    print(f"Service identity created: service-123456789012@{agent}.iam.gserviceaccount.com")


def run_jobs_update(project, call):
    job = project.find("google_cloud_run_v2_job", name=call.names[0])
    if job is None:
        raise Refused(f"Job [{call.names[0]}] could not be found.")
    project.require_image(call.flags["--image"])
    inner = job["template"][0]["template"][0]
    require_deployer(project, call, inner["service_account"])
    inner["containers"][0]["image"] = call.flags["--image"]
    # gcloud forces a pull of the image by a label.
    job["template"][0]["labels"] = {"client.knative.dev/nonce": str(project.next_number())}
    job["client"], job["client_version"] = "gcloud", "528.0.0"


def run_jobs_execute(project, call):
    job = project.find("google_cloud_run_v2_job", name=call.names[0])
    if job is None:
        raise Refused(f"Job [{call.names[0]}] could not be found.")
    project.require_image(job["template"][0]["template"][0]["containers"][0]["image"])
    if "--update-env-vars" not in call.flags:
        project.migrate()
    print(f"Execution [{call.names[0]}-{project.next_number():05}] has successfully completed.")


def run_services_list(project, call):
    label, value = re.fullmatch(r"metadata\.labels\.(\w+)=(.+)", call.flags["--filter"]).groups()
    if call.flags["--format"] != "value(metadata.name)":
        raise Refused(f"the test does not know the format {call.flags['--format']}")
    names = [service["name"] for service in project.of_type("google_cloud_run_v2_service") if (service["labels"] or {}).get(label) == value]
    print("\n".join(sorted(names)))


def run_services_describe(project, call):
    service, form = service_named(project, call.names[0]), call.flags["--format"]
    targets = [(revision["name"], tag) for revision in project.state["revisions"][service["name"]] for tag in revision["tags"]]
    serving = [(revision["name"], None) for revision in project.state["revisions"][service["name"]] if revision["percent"]]
    printed = {
        "value(status.latestCreatedRevisionName)": service["latest_created_revision"],
        "value(status.traffic[].tag)": ";".join([*(tag for _, tag in targets), ""]),
        TRAFFIC: ",".join(f"{revision}={tag}" for revision, tag in targets + serving),
    }
    if form not in printed:
        raise Refused(f"the test does not know the format {form}")
    print(printed[form])


def run_services_update(project, call):
    service = service_named(project, call.names[0])
    template = service["template"][0]
    require_deployer(project, call, template["service_account"])
    template["containers"][0]["image"] = call.flags["--image"]
    suffix = call.flags.get("--revision-suffix") or (f"{project.next_number():05}-abc" if "--tag" in call.flags else None)
    # A name is chosen by gcloud if there is a tag or a suffix; otherwise a label forces a new revision.
    template["revision"] = f"{service['name']}-{suffix}" if suffix else None
    template["labels"] = {"client.knative.dev/nonce": str(project.next_number())}
    service["client"], service["client_version"] = "gcloud", "528.0.0"
    if "--no-traffic" in call.flags:
        service["follows_latest"] = False
    revision = project.release(service)
    if "--tag" in call.flags:
        tag(project, service["name"], call.flags["--tag"], revision)


def tag(project, service, name, revision):
    for each in project.state["revisions"][service]:
        each["tags"] = [other for other in each["tags"] if other != name] + ([name] if each["name"] == revision else [])


def run_services_update_traffic(project, call):
    service = service_named(project, call.names[0])
    revisions = project.state["revisions"][service["name"]]
    if "--set-tags" in call.flags or "--clear-tags" in call.flags:
        for revision in revisions:
            revision["tags"] = []
    for revision in revisions:
        revision["tags"] = [name for name in revision["tags"] if name not in call.flags.get("--remove-tags", "").split(",")]
    for name, revision in {**call.map("--set-tags"), **call.map("--update-tags")}.items():
        if revision not in [each["name"] for each in revisions]:
            raise Refused(f"Revision '{revision}' not found.")
        if len(name) + len(service["name"]) > 46:
            raise Refused(f"Traffic tag '{name}' is too long for service {service['name']}")
        tag(project, service["name"], name, revision)
    if "--to-latest" in call.flags:
        service["follows_latest"] = True
        project.route(service["name"], service["latest_created_revision"])
    for name, percent in call.map("--to-tags").items():
        target = next((revision["name"] for revision in revisions if name in revision["tags"]), None)
        if target is None or percent != "100":
            raise Refused(f"no revision has the tag {name}")
        service["follows_latest"] = False
        project.route(service["name"], target)


def sql_instances_clone(project, call):
    source, target = call.names
    if project.find("google_sql_database_instance", name=source) is None:
        raise Refused(f"The Cloud SQL instance {source} does not exist.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", call.flags["--point-in-time"]):
        raise Refused(f"Invalid value for [--point-in-time]: {call.flags['--point-in-time']}")
    project.state.setdefault("clones", {})[target] = source


def sql_instances_describe(project, call):
    known = {instance["name"] for instance in project.of_type("google_sql_database_instance")} | project.state.get("clones", {}).keys()
    if call.names[0] not in known:
        raise Refused(f"The Cloud SQL instance {call.names[0]} does not exist.")
    print({"value(state)": "RUNNABLE", "value(ipAddresses[0].ipAddress)": "10.100.0.3"}[call.flags["--format"]])


def sql_instances_delete(project, call):
    if project.state.get("clones", {}).pop(call.names[0], None) is None:
        raise Refused(f"{call.names[0]} is not a clone")


def sql_users_set_password(project, call):
    if call.flags["--instance"] not in project.state.get("clones", {}):
        raise Refused("the password of an instance that serves must not change")


def main():
    project_file, *arguments = sys.argv[1:]
    try:
        call = Call(arguments)
        if call.command == "builds submit":
            import build  # It needs a package that the other commands, which are called often, do without.

            return build.submit(Project(project_file), call)
        with Project(project_file).opened() as project:
            globals()[call.command.replace(" ", "_").replace("-", "_")](project, call)
    except Refused as refusal:
        print(f"ERROR: (gcloud.{'.'.join(arguments[:3])}) {refusal}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
