"""The command `ebb` of the test. What talks to the API works if $EBB_URL and $EBB_TOKEN are those of the API; `ebb restore` clones the
database. A task of a pool is executed if the pool has a token of the role `worker`.

usage: ebb.py PROJECT.json doctor | restore --to TIME --project PROJECT --as NAME
                           | tokens create NAME --role ROLE --days DAYS | apply FOLDER | trigger NAME --watch"""
import os
import pathlib
import sys

import yaml
from checks import environment
from project import NUMBER, Project


def restore(state, to, name):
    state.restore("ebbflow", name)
    print(f"`{name}` is `ebbflow` as of {to}.")


def connected(state):
    """The service of the API and the account that calls it."""
    trigger = next(service for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["function"] == "trigger")
    variables, (account, _, audience) = environment(trigger), os.environ.get("EBB_TOKEN", "").partition(" ")
    address = f"https://{trigger['name']}-{NUMBER}.{trigger['location']}.run.app"
    if os.environ.get("EBB_URL") != address:
        sys.exit(f"✗ server: no response from {os.environ.get('EBB_URL')}")
    accepted = variables["EBB_API_ACCOUNTS"].split(",")
    if audience != variables["EBB_API_AUDIENCE"] or not {account, "@" + account.partition("@")[2]} & {*accepted}:
        sys.exit("✗ identity: the token is not accepted")
    return trigger, account


def doctor(state):
    _, account = connected(state)
    print(f"✓ identity: you are {account} in tenant 1\n✓ runs: nothing is stuck, lost or overdue")


def create_token(state, name, role, days):
    connected(state)
    token = f"ebb_{state.next_number():08}"
    state.state["tokens"][token] = role
    print(f"{name} has the role {role} in default for {days} days; the token is shown only once:", file=sys.stderr)
    print(token)


def apply(state, folder):
    """Registers workflows of one task each, whose queue the installation knows."""
    trigger, _ = connected(state)
    queues = dict(entry.split("=") for entry in environment(trigger)["EBB_QUEUES"].split(","))
    for file in sorted(pathlib.Path(folder, "graphs").glob("*.yaml")):
        workflow = yaml.safe_load(file.read_text())
        [task] = workflow["tasks"]
        if task["config"].keys() != {"command"}:
            sys.exit(f"{file.name}: {task['type']} has no settings {sorted(task['config'])}")
        if queues.get(task["queue"]) != "pool":
            sys.exit(f"{file.name}: the installation has no pool `{task['queue']}`")
        state.state["workflows"][workflow["name"]] = {"task": task["name"], "queue": task["queue"]}
        print(f"registered {workflow['name']} v1")


def trigger(state, name):
    api, _ = connected(state)
    workflow = state.state["workflows"][name]
    pool = state.find("google_cloud_run_v2_worker_pool", name=f"{api['labels']['installation']}-worker-{workflow['queue']}")
    variables = pool["template"][0]["containers"][0]["env"]
    token = next(state.secret(each["value_source"][0]["secret_key_ref"][0]["secret"])[-1] for each in variables if each["name"] == "EBB_TOKEN")
    if state.state["tokens"].get(token.strip()) != "worker":
        sys.exit(f"✗ {workflow['task']}: no worker serves its queue")
    print(f"12:00:01 {workflow['task']} ▷ dispatched\n12:00:01 {workflow['task']} ✓ succeeded")
    print(f"run 01a1e26f-3fc0-758c-81f4-6c21d80ff5b2 of {name} succeeded in 98 ms")


with Project(sys.argv[1]).opened() as state:
    match sys.argv[2:]:
        case ["doctor"]:
            doctor(state)
        case ["restore", "--to", to, "--project", _, "--as", name]:
            restore(state, to, name)
        case ["tokens", "create", name, "--role", role, "--days", days]:
            create_token(state, name, role, days)
        case ["apply", folder]:
            apply(state, folder)
        case ["trigger", name, "--watch"]:
            trigger(state, name)
        case _:
            sys.exit(f"the test does not know ebb {sys.argv[2:]}")
