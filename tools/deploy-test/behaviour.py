"""How the APIs behind resource types differ from a store that keeps what it is given."""
import copy
import json
import re

from project import NUMBER, Refused


def name(type_name, planned):
    """Gives a new resource the names that Google would give it."""
    if type_name == "google_service_account":
        planned["email"] = f"{planned['account_id']}@{planned['project']}.iam.gserviceaccount.com"
        planned["member"] = f"serviceAccount:{planned['email']}"
        planned["name"] = f"projects/{planned['project']}/serviceAccounts/{planned['email']}"
    if type_name == "google_cloud_run_v2_service":
        planned["uri"] = f"https://{planned['name']}-abcdefghij-uc.a.run.app"
    if type_name == "google_sql_database_instance":
        planned["connection_name"] = f"{planned['project']}:{planned['region']}:{planned['name']}"
    if type_name == "google_secret_manager_secret_version":
        planned["version"] = "1"


def write(project, type_name, prior, stored):
    """Creates or changes a resource."""
    if stored.get("member") and type_name != "google_service_account":
        project.require_member(stored["member"])
    if prior is None:
        require_new(project, type_name, stored)
    for place in ("region", "location"):
        project.require_region(stored.get(place))
    if type_name == "google_sql_database_instance" and stored.get("replica_of"):
        raise Refused("Error 400: backups cannot be enabled on a read replica")
    if type_name == "google_sql_user" and prior and stored["password_wo_version"] != prior["password_wo_version"]:
        stored["password_of"] = None
    if type_name == "google_project_service":
        project.state["apis"] = sorted({*project.state["apis"], stored["service"]})
    if type_name == "google_pubsub_topic":
        project.state["agents"] = sorted({*project.state["agents"], "gcp-sa-pubsub"})
    if type_name == "google_cloud_run_v2_service":
        if prior is None or stored["template"] != prior["template"]:
            stored["latest_ready_revision"] = project.release(stored)
    if type_name == "google_secret_manager_secret_iam_member" and project.secret(stored["secret_id"]) is None:
        raise Refused(f"Error 404: Secret [projects/{NUMBER}/secrets/{stored['secret_id']}] not found.")
    if type_name == "google_cloud_run_v2_worker_pool":
        template = stored["template"][0]
        project.require_container(template["containers"][0], template["service_account"])
    if type_name == "google_cloud_run_v2_job":
        project.require_image(stored["template"][0]["template"][0]["containers"][0]["image"])


def require_new(project, type_name, stored):
    """A name is used once, in an instance if it belongs to one. A binding has the name of what it is about."""
    field = next((field for field in ("account_id", "repository_id", "secret_id", "name") if stored.get(field)), None)
    if field is None or type_name.endswith("_iam_member"):
        return
    where = {name: stored[name] for name in (field, "instance") if name in stored}
    if project.find(type_name, **where):
        raise Refused(f"Error 409: {stored[field]} already exists" + (f" in {stored['instance']}" if "instance" in stored else ""))


def imported(project, type_name, name):
    """What exists under the name by which `terraform import` asks for it."""
    fields = {
        "google_sql_database_instance": r"projects/(?P<project>[^/]+)/instances/(?P<name>[^/]+)",
        "google_sql_database": r"projects/(?P<project>[^/]+)/instances/(?P<instance>[^/]+)/databases/(?P<name>[^/]+)",
        "google_sql_user": r"(?P<project>[^/]+)/(?P<instance>[^/]+)/(?P<name>[^/]+)",
    }
    match = re.fullmatch(fields[type_name], name)
    found = match and copy.deepcopy(project.find(type_name, **match.groupdict()))
    # Which version of a password it is, nobody but terraform's state knows.
    return {**found, "password_wo_version": None} if found and type_name == "google_sql_user" else found


def delete(project, type_name, prior):
    """Deletes a resource, or refuses to."""
    for place in ("region", "location"):
        project.require_region(prior.get(place))
    if prior.get("deletion_policy") == "ABANDON":
        return
    if prior.get("deletion_protection"):
        raise Refused(f"cannot destroy {prior['name']} without setting deletion_protection=false and running `terraform apply`")
    if type_name == "google_project_service" and prior.get("disable_on_destroy"):
        project.state["apis"].remove(prior["service"])
    if type_name == "google_sql_user" and prior["name"] in project.state["owners"]:
        raise Refused(f"Error 400: role \"{prior['name']}\" cannot be dropped because some objects depend on it")
    if type_name == "google_sql_database" and prior["name"] in project.state["uses"]:
        raise Refused(f"Error 400: database \"{prior['name']}\" is being accessed by other users")
    if type_name == "google_storage_bucket" and not prior.get("force_destroy") and any(name.startswith(f"{prior['name']}/") for name in project.state["objects"]):
        raise Refused(f"Error trying to delete bucket {prior['name']} containing objects without `force_destroy` set to true")
    if type_name == "google_service_networking_connection":
        raise Refused("Error 400: Producer services (e.g. CloudSQL) are still using this connection")


def seen(type_name, stored):
    """A resource as the API returns it."""
    value = dict(stored)
    if type_name == "google_cloud_run_v2_service" and not value.get("scaling"):
        # The API fills it in, and terraform would remove it again with every apply.
        value["scaling"] = [{"min_instance_count": 0, "max_instance_count": 0, "manual_instance_count": 0, "scaling_mode": None}]
    if type_name == "google_monitoring_dashboard":
        dashboard = {**normalised(json.loads(value["dashboard_json"])), "name": value["id"], "etag": "1"}
        value["dashboard_json"] = json.dumps(dashboard, sort_keys=True)
    return value


def planned(type_name, prior, value):
    """A change as the provider plans it."""
    if type_name == "google_monitoring_dashboard" and isinstance(value["dashboard_json"], str):
        old, new = json.loads(prior["dashboard_json"]), json.loads(value["dashboard_json"])
        if reduced(old, new) == new:
            value["dashboard_json"] = prior["dashboard_json"]
    return value


def normalised(value):
    """JSON without zeros and empty values, as the monitoring API returns it, and with the defaults it adds."""
    if isinstance(value, dict):
        kept = {key: normalised(inner) for key, inner in value.items()}
        kept = {key: inner for key, inner in kept.items() if inner not in (0, "", False, [], {})}
        return {"targetAxis": "Y1", **kept} if "plotType" in kept else kept
    return [normalised(element) for element in value] if isinstance(value, list) else value


def reduced(old, new):
    """The old value without the keys that the new one lacks: the provider's comparison."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: reduced(inner, new[key]) for key, inner in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list):
        return [reduced(inner, new[place]) if place < len(new) else inner for place, inner in enumerate(old)]
    return old
