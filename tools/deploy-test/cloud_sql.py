"""The commands of the test's gcloud that are about Cloud SQL."""
import re
import sys

from language import printed
from project import Refused


def sql_instances_clone(project, call):
    source, target = call.names
    original = project.find("google_sql_database_instance", name=source)
    if original is None:
        raise Refused(f"The Cloud SQL instance {source} does not exist.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", call.flags["--point-in-time"]):
        raise Refused(f"Invalid value for [--point-in-time]: {call.flags['--point-in-time']}")
    # A clone has the settings of its original. An instance takes one operation at a time, and this one takes 21 minutes.
    operation, settings = f"clone-{project.next_number()}", original["settings"][0]
    kept = {name: settings[name] for name in ("deletion_protection_enabled", "retain_backups_on_delete")}
    project.state["clones"][target] = {**kept, "operation": operation, "ready": False, "address": "10.100.0.3", "password": None}
    if "--async" not in call.flags:
        return too_long(operation)
    print(printed({"name": operation}, call.flags["--format"]))


def too_long(operation):
    """gcloud stops waiting, and the operation continues."""
    print(f"ERROR: Operation {operation} is taking longer than expected. You can continue waiting for the operation by running `gcloud beta sql operations wait`", file=sys.stderr)
    return 1


def sql_operations_wait(project, call):
    if call.names[0].startswith("restore-"):
        return None if call.flags.get("--timeout") == "unlimited" else too_long(call.names[0])
    clone = next((clone for clone in project.state["clones"].values() if clone["operation"] == call.names[0]), None)
    if clone is None:
        raise Refused(f"The operation {call.names[0]} does not exist.")
    if call.flags.get("--timeout") != "unlimited":
        return too_long(call.names[0])
    clone["ready"] = True


def clone_named(project, name, ready=True):
    clone = project.state["clones"].get(name)
    if clone is None and project.find("google_sql_database_instance", name=name) and not project.uses_database(name):
        return project.find("google_sql_database_instance", name=name)["settings"][0]
    if clone is None:
        raise Refused(f"The Cloud SQL instance {name} does not exist, or serves and must not be touched.")
    if ready and not clone.get("ready", True):
        raise Refused("Operation failed because another operation was already in progress.")
    return clone


def sql_instances_describe(project, call):
    clone = clone_named(project, call.names[0], ready=False)
    state = "RUNNABLE" if clone["ready"] else "PENDING_CREATE"
    print(printed({"state": state, "ipAddresses": [{"ipAddress": clone["address"]}]}, call.flags["--format"]))


def sql_instances_list(project, call):
    call.print_each({"name": name} for name in project.state["clones"])


def sql_instances_patch(project, call):
    clone = clone_named(project, call.names[0])
    for flag, setting in (("--no-deletion-protection", "deletion_protection_enabled"), ("--no-retain-backups-on-delete", "retain_backups_on_delete")):
        clone[setting] = clone[setting] and flag not in call.flags


def sql_instances_delete(project, call):
    clone = clone_named(project, call.names[0])
    if clone["deletion_protection_enabled"]:
        raise Refused("The instance is protected. Please disable the deletion protection and try again.")
    project.state["clones"].pop(call.names[0], None)
    project.remove_instance(call.names[0])
    if clone["retain_backups_on_delete"]:
        project.state["backups"].append(call.names[0])


def sql_users_set_password(project, call):
    clone_named(project, call.flags["--instance"])["password"] = call.flags["--password"]


def instance_named(project, name):
    found = project.find("google_sql_database_instance", name=name)
    if found is None:
        raise Refused(f"The Cloud SQL instance {name} does not exist.")
    return found


# The backups of each instance, newest first.
BACKUPS = [{"id": "1700000000003", "status": "FAILED"}, {"id": "1700000000002", "status": "SUCCESSFUL"}, {"id": "1700000000001", "status": "SUCCESSFUL"}]


def sql_backups_list(project, call):
    instance_named(project, call.flags["--instance"])
    call.print_each(BACKUPS)


def sql_backups_restore(project, call):
    """A backup replaces everything in an instance, also its users: the roles of Postgres are in the backup."""
    source, target = (instance_named(project, call.flags[flag]) for flag in ("--backup-instance", "--restore-instance"))
    if call.names[0] != "1700000000002":
        raise Refused(f"{call.names[0]} is not the newest backup that succeeded.")
    if source["database_version"] != target["database_version"]:
        raise Refused("The target instance must have the same database version.")
    project.require_region(target["region"])
    project.replace_content(source["name"], target["name"])
    operation = f"restore-{project.next_number()}"
    if "--async" not in call.flags:
        return too_long(operation)
    print(printed({"name": operation}, call.flags["--format"]))


def sql_instances_create(project, call):
    """A replica is in the network of its primary, which has no public address here; it has neither backups nor a standby."""
    source, name = call.flags["--master-instance-name"], call.names[0]
    primary = instance_named(project, source)
    if "--no-assign-ip" not in call.flags:
        raise Refused("A public address is not allowed for a replica of an instance without one.")
    project.restore(source, name)
    replica = instance_named(project, name)
    replica.update(region=call.flags["--region"], replica_of=source, connection_name=f"{primary['project']}:{call.flags['--region']}:{name}")
    replica["settings"][0].update(availability_type="ZONAL", backup_configuration=[])
    project.set_password_of(name, source)


def sql_instances_promote_replica(project, call):
    replica = instance_named(project, call.names[0])
    if not replica.get("replica_of"):
        raise Refused(f"{call.names[0]} is not a replica.")
    replica["replica_of"] = None
