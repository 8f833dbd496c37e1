"""A stand-in for a Google Cloud project: what exists in it, and the rules of Google's APIs that have broken deploys before.
It lives in a JSON file, which the terraform provider and the gcloud command of the test share."""
import contextlib
import copy
import fcntl
import json
import pathlib

NUMBER = "123456789012"
# Direct VPC egress may take this long to reach the database from a new instance.
SECONDS_TO_FIRST_CONNECTION = 75

# The API that serves a resource type, by the longest prefix of the type's name.
APIS = {
    "google_artifact_registry": "artifactregistry",
    "google_cloud_run": "run",
    "google_cloud_scheduler": "cloudscheduler",
    "google_cloud_tasks": "cloudtasks",
    "google_cloudbuild": "cloudbuild",
    "google_compute": "compute",
    "google_iap": "iap",
    "google_logging": "logging",
    "google_monitoring": "monitoring",
    "google_project": "cloudresourcemanager",
    "google_project_service": "serviceusage",
    "google_pubsub": "pubsub",
    "google_secret_manager": "secretmanager",
    "google_service_account": "iam",
    "google_service_networking": "servicenetworking",
    "google_sql": "sqladmin",
    "google_storage": "storage",
}


class Refused(Exception):
    """What an API answers instead of doing what it was asked to."""


class Project:
    def __init__(self, file):
        self.file = pathlib.Path(file)

    @classmethod
    def empty(cls, file):
        """An empty project: no API is enabled and nothing exists."""
        project = cls(file)
        state = {"apis": [], "agents": [], "images": {}, "resources": {}, "revisions": {}, "owners": [], "uses": [], "count": 0}
        project.file.write_text(json.dumps(state))
        return project

    @contextlib.contextmanager
    def opened(self):
        """The project's state, as one caller at a time may change it."""
        with self.file.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = json.loads(file.read())
            yield State(state)
            file.seek(0)
            file.write(json.dumps(state))
            file.truncate()


class State:
    def __init__(self, state):
        self.state = state

    # --- APIs and accounts

    def require_api(self, api):
        if f"{api}.googleapis.com" not in self.state["apis"]:
            raise Refused(f"Error 403: {api}.googleapis.com has not been used in project {NUMBER} before or it is disabled")

    def require_api_of(self, resource_type):
        prefix = max((prefix for prefix in APIS if resource_type.startswith(prefix)), key=len)
        self.require_api(APIS[prefix])
        if resource_type.startswith("google_project"):
            self.require_api("cloudresourcemanager")

    def require_member(self, member):
        """A binding may only name accounts that exist."""
        if member.startswith("serviceAccount:service-"):
            agent = member.split("@")[1].split(".")[0]
            if agent not in self.state["agents"]:
                raise Refused(f"Error 400: Service account {member} does not exist")

    def granted(self, resource_type, role, account, **where):
        """Whether terraform has granted that role to an account."""
        member = f"serviceAccount:{account}"
        return any(
            entry["role"] == role and entry["member"] == member and all(entry.get(key) == value for key, value in where.items())
            for entry in self.of_type(resource_type)
        )

    def account(self, name):
        return f"{name}@{self.project_id()}.iam.gserviceaccount.com"

    def project_id(self):
        return next(entry["project"] for entry in self.of_type("google_project_service"))

    # --- resources

    def of_type(self, resource_type):
        return [entry["value"] for entry in self.state["resources"].values() if entry["type"] == resource_type]

    def find(self, resource_type, **fields):
        matching = (entry for entry in self.of_type(resource_type) if all(entry.get(key) == value for key, value in fields.items()))
        return next(matching, None)

    def put(self, identity, resource_type, value):
        self.state["resources"][identity] = {"type": resource_type, "value": value}

    def get(self, identity):
        return copy.deepcopy(self.state["resources"].get(identity, {}).get("value"))

    def remove(self, identity):
        self.state["resources"].pop(identity, None)

    def next_number(self):
        self.state["count"] += 1
        return self.state["count"]

    # --- Cloud Run

    def release(self, service):
        """Creates a revision from a service's template, unless one of the same name and template exists."""
        template = service["template"][0]
        container = template["containers"][0]
        self.require_image(container["image"])
        for env in container.get("env") or []:
            for source in env.get("value_source") or []:
                self.require_secret(source["secret_key_ref"][0]["secret"], template["service_account"])
        probe = container["startup_probe"][0]
        if probe["period_seconds"] * probe["failure_threshold"] < SECONDS_TO_FIRST_CONNECTION:
            raise Refused(f"Revision of {service['name']} is not ready: the startup probe gave up before the network was there")
        name = template.get("revision")
        revisions = self.state["revisions"].setdefault(service["name"], [])
        config = {key: value for key, value in template.items() if key != "revision"}
        if name and (existing := next((revision for revision in revisions if revision["name"] == name), None)):
            if existing["config"] != config:
                raise Refused(f"Error 409: Revision named '{name}' with different configuration already exists.")
            return name
        name = name or f"{service['name']}-{len(revisions) + 1:05}-{self.next_number():03x}"
        scaling = (template.get("scaling") or [{}])[0]
        revisions.append({"name": name, "config": config, "minimum": scaling.get("min_instance_count") or 0, "tags": [], "percent": 0})
        service["latest_created_revision"] = name
        if service.setdefault("follows_latest", True):
            self.route(service["name"], name)
        return name

    def route(self, service, revision):
        for each in self.state["revisions"][service]:
            each["percent"] = 100 if each["name"] == revision else 0

    def require_image(self, image):
        if image not in self.state["images"]:
            raise Refused(f"Image '{image}' not found.")

    def require_secret(self, secret, account):
        if not self.of_type("google_secret_manager_secret_version"):
            raise Refused(f"Secret {secret} has no version")
        if not self.granted("google_secret_manager_secret_iam_member", "roles/secretmanager.secretAccessor", account, secret_id=secret):
            raise Refused(f"Permission denied on secret {secret} for {account}")

    def warm_instances(self):
        """The instances that run without any request: those of services, and those of each revision with traffic or a tag."""
        services = {service["name"]: service for service in self.of_type("google_cloud_run_v2_service")}
        of_services = sum((service.get("scaling") or [{}])[0].get("min_instance_count") or 0 for service in services.values())
        kept = [revision for name in services for revision in self.state["revisions"][name] if revision["percent"] or revision["tags"]]
        return of_services + sum(revision["minimum"] for revision in kept)

    # --- Cloud SQL

    def migrate(self):
        """The migration makes its user the owner of tables, and functions connect."""
        user = self.find("google_sql_user", type=None) or self.of_type("google_sql_user")[0]
        self.state["owners"] = [user["name"]]
        self.state["owners"] += [each["name"] for each in self.of_type("google_sql_user") if each.get("type") == "CLOUD_IAM_SERVICE_ACCOUNT"]
        self.state["uses"] = [database["name"] for database in self.of_type("google_sql_database")]
