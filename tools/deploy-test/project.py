"""A stand-in for a Google Cloud project: what exists in it, and the rules of Google's APIs that have broken deploys before.
It lives in a JSON file, which the terraform provider and the gcloud command of the test share."""
import contextlib
import copy
import fcntl
import json
import os
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
        self.last_seen = (None, None)

    @classmethod
    def empty(cls, file):
        """An empty project: no API is enabled and nothing exists."""
        project = cls(file)
        state = {"apis": [], "agents": [], "images": {}, "resources": {}, "revisions": {}, "owners": [], "uses": [], "count": 0, "clones": {}, "backups": [], "paused": [], "accounts": [], "impersonators": [], "members": [], "lost": [], "builds": [], "secrets": {}, "tokens": {}, "workflows": {}, "objects": []}
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
            self.last_seen = (None, None)

    def seen(self):
        """The project's state, which the caller does not change. Terraform reads every resource by itself."""
        with self.file.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            version, last_seen = os.fstat(file.fileno()).st_mtime_ns, self.last_seen
            if last_seen[0] != version:
                self.last_seen = last_seen = (version, State(json.loads(file.read())))
        return last_seen[1]


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

    def require_region(self, region):
        if region in self.state["lost"]:
            raise Refused(f"Error 503: {region} is unavailable")

    def require_member(self, member):
        """A binding may only name accounts that exist."""
        if member.startswith("serviceAccount:service-"):
            agent = member.split("@")[1].split(".")[0]
            if agent not in self.state["agents"]:
                raise Refused(f"Error 400: Service account {member} does not exist")
        elif member.startswith("serviceAccount:"):
            email = member.removeprefix("serviceAccount:")
            if email not in self.state["accounts"] and self.find("google_service_account", email=email) is None:
                raise Refused(f"Error 400: Service account {email} does not exist.")

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
        self.require_container(container, template["service_account"])
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

    def require_container(self, container, account):
        """What a revision runs exists, and its account may read what it is given."""
        self.require_image(container["image"])
        for env in container.get("env") or []:
            for source in env.get("value_source") or []:
                self.require_secret(source["secret_key_ref"][0]["secret"], account)

    def route(self, service, revision):
        for each in self.state["revisions"][service]:
            each["percent"] = 100 if each["name"] == revision else 0

    def require_image(self, image):
        self.require_region(image.split("-docker.pkg.dev/")[0])
        if image not in self.state["images"]:
            raise Refused(f"Image '{image}' not found.")

    def secret(self, name):
        """The values of a secret, of which terraform's are never known; none if there is no such secret."""
        if ours := self.find("google_secret_manager_secret", secret_id=name):
            return [None for version in self.of_type("google_secret_manager_secret_version") if version["secret"] == ours["id"]]
        return self.state["secrets"].get(name)

    def require_secret(self, secret, account):
        if not self.secret(secret):
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

    def restore(self, source, name):
        """Clones an instance with its databases and users, and waits for the clone."""
        for identity, entry in list(self.state["resources"].items()):
            value = copy.deepcopy(entry["value"])
            field = {"google_sql_database_instance": "name", "google_sql_database": "instance", "google_sql_user": "instance"}.get(entry["type"])
            if field and value[field] == source:
                value[field], value["id"] = name, f"{identity}-{name}"
                if entry["type"] == "google_sql_database_instance":
                    value["connection_name"] = f"{value['project']}:{value['region']}:{name}"
                self.put(value["id"], entry["type"], value)

    def of_instance(self, kind, name):
        return {entry["value"]["name"]: entry["value"] for entry in self.state["resources"].values() if entry["type"] == kind and entry["value"]["instance"] == name}

    def replace_content(self, source, target):
        """Gives an instance the databases and users of another one, with their rights and passwords, instead of its own."""
        for kind in ("google_sql_database", "google_sql_user"):
            theirs, ours = self.of_instance(kind, source), self.of_instance(kind, target)
            for name in ours.keys() - theirs.keys():
                self.remove(ours[name]["id"])
                self.state["members"] = [member for member in self.state["members"] if member != name]
            for name in theirs.keys() - ours.keys():
                identity = f"{theirs[name]['id']}-{target}"
                self.put(identity, kind, {**copy.deepcopy(theirs[name]), "instance": target, "id": identity})
        self.set_password_of(target, source)

    def set_password_of(self, instance, source):
        """The user of an instance has a password that another installation knows."""
        self.of_instance("google_sql_user", instance)["ebbflow"]["password_of"] = source

    def remove_instance(self, name):
        for identity, entry in list(self.state["resources"].items()):
            if (entry["type"], entry["value"].get("name")) == ("google_sql_database_instance", name):
                self.remove(identity)
            if entry["type"] in ("google_sql_database", "google_sql_user") and entry["value"]["instance"] == name:
                self.remove(identity)

    def uses_database(self, name):
        """The services that serve with this instance."""
        serving = [(service, revision) for service, revisions in self.state["revisions"].items() for revision in revisions if revision["percent"]]
        return [service for service, revision in serving if any(volume["cloud_sql_instance"] and volume["cloud_sql_instance"][0]["instances"][0].endswith(f":{name}") for volume in revision["config"]["volumes"])]

    def migrate(self, job):
        """The migration makes its user the owner of tables and lets others assume its role; functions connect."""
        instance = job["template"][0]["template"][0]["volumes"][0]["cloud_sql_instance"][0]["instances"][0].split(":")[-1]
        if self.of_instance("google_sql_user", instance)["ebbflow"].get("password_of"):
            raise Refused('password authentication failed for user "ebbflow"')
        self.state["owners"] = [user["name"] for user in self.of_type("google_sql_user") if user.get("type") in (None, "CLOUD_IAM_SERVICE_ACCOUNT")]
        self.state["uses"] = [database["name"] for database in self.of_type("google_sql_database")]
        granted = next((env["value"] for env in job["template"][0]["template"][0]["containers"][0]["env"] if env["name"] == "EBB_GRANT_TO"), "")
        self.state["members"] = sorted({*self.state["members"], *granted.split(",")})
