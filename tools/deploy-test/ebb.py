"""The command `ebb` of the test. `ebb doctor` finds nothing wrong if $EBB_URL and $EBB_TOKEN are those of the API; `ebb restore`
clones the database.

usage: ebb.py PROJECT.json doctor | restore --to TIME --project PROJECT --as NAME"""
import os
import sys

from checks import environment
from project import NUMBER, Project


def restore(project, to, name):
    with Project(project).opened() as state:
        state.restore("ebbflow", name)
    print(f"`{name}` is `ebbflow` as of {to}.")


def doctor(project):
    with Project(project).opened() as state:
        trigger = next(service for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["function"] == "trigger")
    variables, (account, _, audience) = environment(trigger), os.environ.get("EBB_TOKEN", "").partition(" ")
    address = f"https://{trigger['name']}-{NUMBER}.{trigger['location']}.run.app"
    if os.environ.get("EBB_URL") != address:
        sys.exit(f"✗ server: no response from {os.environ.get('EBB_URL')}")
    accepted = variables["EBB_API_ACCOUNTS"].split(",")
    if audience != variables["EBB_API_AUDIENCE"] or not {account, "@" + account.partition("@")[2]} & {*accepted}:
        sys.exit("✗ identity: the token is not accepted")
    print(f"✓ identity: you are {account} in tenant 1\n✓ runs: nothing is stuck, lost or overdue")


match sys.argv[1:]:
    case [project, "doctor"]:
        doctor(project)
    case [project, "restore", "--to", to, "--project", _, "--as", name]:
        restore(project, to, name)
    case _:
        sys.exit(f"the test does not know {sys.argv[2:]}")
