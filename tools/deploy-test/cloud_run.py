"""The commands of the test's gcloud that are about Cloud Run."""
import re

from language import printed
from project import Refused


def named(project, call, kind):
    """What a command is about: it has that name in the region of the command."""
    found = project.find(f"google_cloud_run_v2_{kind}", name=call.names[0], location=call.region)
    if found is None:
        raise Refused(f"Cannot find {kind} [{call.names[0]}] in {call.region}")
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


def run_jobs_update(project, call):
    job = named(project, call, "job")
    project.require_image(call.flags["--image"])
    inner = job["template"][0]["template"][0]
    require_deployer(project, call, inner["service_account"])
    inner["containers"][0]["image"] = call.flags["--image"]
    # gcloud forces a pull of the image by a label.
    job["template"][0]["labels"] = {"client.knative.dev/nonce": str(project.next_number())}
    job["client"], job["client_version"] = "gcloud", "528.0.0"


def run_jobs_execute(project, call):
    job = named(project, call, "job")
    container = job["template"][0]["template"][0]["containers"][0]
    project.require_image(container["image"])
    sources = {env["name"] for env in container["env"] if env.get("value_source")}
    for name in call.map("--update-env-vars"):
        if name in sources:
            raise Refused(f"Cannot update environment variable [{name}] to string literal because it has already been set with a different type.")
    if "--args" in call.flags:
        migrate_elsewhere(project, call)
    else:
        project.migrate(job)
    print(f"Execution [{call.names[0]}-{project.next_number():05}] has successfully completed.")


def migrate_elsewhere(project, call):
    """The migration of a clone: its address is an argument, and its password a variable that Postgres' clients know."""
    migrate, url = call.flags["--args"].split(",")
    address = re.fullmatch(r"--database-url=postgres://ebbflow@([0-9.]+)/ebbflow\?sslmode=require", url)
    clone = address and next((clone for clone in project.state["clones"].values() if clone["address"] == address[1]), None)
    if migrate != "migrate" or clone is None:
        raise Refused(f"no clone is migrated by {call.flags['--args']}")
    if clone["password"] is None or call.map("--update-env-vars").get("PGPASSWORD") != clone["password"]:
        raise Refused("password authentication failed for user \"ebbflow\"")


def run_services_list(project, call):
    print_names(project, call, "google_cloud_run_v2_service")


def beta_run_worker_pools_list(project, call):
    print_names(project, call, "google_cloud_run_v2_worker_pool")


def print_names(project, call, kind):
    found = sorted((resource for resource in project.of_type(kind) if resource["location"] == call.region), key=lambda resource: resource["name"])
    call.print_each({"metadata": {"name": resource["name"], "labels": resource["labels"]}} for resource in found)


def run_services_describe(project, call):
    service = named(project, call, "service")
    revisions = project.state["revisions"][service["name"]]
    serving = [{"revisionName": revision["name"], "percent": 100} for revision in revisions if revision["percent"]]
    tagged = [{"revisionName": revision["name"], "tag": tag} for revision in revisions for tag in revision["tags"]]
    status = {"latestCreatedRevisionName": service["latest_created_revision"], "traffic": serving + tagged}
    print(printed({"status": status}, call.flags["--format"]))


def run_services_update(project, call):
    service = named(project, call, "service")
    if "--ingress" in call.flags:
        service["ingress"] = {"internal": "INGRESS_TRAFFIC_INTERNAL_ONLY"}[call.flags["--ingress"]]
        return
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


def beta_run_worker_pools_describe(project, call):
    image = named(project, call, "worker_pool")["template"][0]["containers"][0]["image"]
    print(printed({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}}, call.flags["--format"]))


def artifacts_docker_images_describe(project, call):
    project.require_image(call.names[0])


def beta_run_worker_pools_update(project, call):
    pool = named(project, call, "worker_pool")
    project.require_image(call.flags["--image"])
    template = pool["template"][0]
    require_deployer(project, call, template["service_account"])
    template["containers"][0]["image"] = call.flags["--image"]
    template["labels"] = {"client.knative.dev/nonce": str(project.next_number())}
    pool["client"], pool["client_version"] = "gcloud", "528.0.0"


def tag(project, service, name, revision):
    for each in project.state["revisions"][service]:
        each["tags"] = [other for other in each["tags"] if other != name] + ([name] if each["name"] == revision else [])


def run_services_update_traffic(project, call):
    service = named(project, call, "service")
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
