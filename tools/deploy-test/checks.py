"""What must hold in the project at some moment of the test. Each check returns the problems it finds."""
import json

# An event stream ends itself after a quarter of an hour.
STREAM_SECONDS = 15 * 60
# What stays when everything is destroyed: APIs, and what goes with its parent.
ABANDONED = {"google_project_service", "google_sql_user", "google_sql_database", "google_service_networking_connection"}


def environment(service):
    return {env["name"]: env.get("value") for env in service["template"][0]["containers"][0]["env"]}


def services(state):
    return {service["labels"]["function"] + service["name"].rpartition("execute")[2]: service for service in state.of_type("google_cloud_run_v2_service")}


def console_is_reachable(state):
    """A person can open the console: through Identity-Aware Proxy, or with a client to sign in with."""
    console = next(service for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["function"] == "console")
    variables = environment(console)
    if not console.get("iap_enabled"):
        if "EBB_SIGN_IN_CLIENT_ID" not in variables:
            yield "nobody can open the console: there is neither Identity-Aware Proxy nor a client to sign in with"
        return
    issuers = json.loads(variables.get("EBB_API_ISSUERS") or "[]")
    if not any(entry["issuer"] == "https://cloud.google.com/iap" and entry["audience"].endswith(f"/services/{console['name']}") for entry in issuers):
        yield "the console does not accept the tokens of Identity-Aware Proxy"
    if not state.of_type("google_iap_web_cloud_run_service_iam_member"):
        yield "nobody may pass Identity-Aware Proxy"
    agents = [entry["member"] for entry in state.of_type("google_cloud_run_v2_service_iam_member") if entry["name"] == console["name"]]
    if not any("@gcp-sa-iap." in member for member in agents):
        yield "Identity-Aware Proxy may not call the console"


def limits_are_known(state):
    """No timeout cuts what a function does in good faith."""
    by_name = {service["name"]: service for service in state.of_type("google_cloud_run_v2_service")}
    for name, service in by_name.items():
        timeout = int(service["template"][0]["timeout"].rstrip("s"))
        if environment(service).get("EBB_REQUEST_SECONDS") != str(timeout):
            yield f"{name} does not know that its requests end after {timeout} s"
        if service["labels"]["function"] in ("console", "trigger") and timeout <= STREAM_SECONDS:
            yield f"{name} cuts event streams after {timeout} s"
    for subscription in state.of_type("google_pubsub_subscription"):
        host = subscription["push_config"][0]["push_endpoint"].split("//")[1].split("-abcdefghij")[0]
        function = by_name[host]["labels"]["function"]
        if function != "trigger" and int(by_name[host]["template"][0]["timeout"].rstrip("s")) > subscription["ack_deadline_seconds"]:
            yield f"{subscription['name']} delivers a message again while {host} still works on it"


def services_can_be_replaced(state):
    for service in state.of_type("google_cloud_run_v2_service"):
        if service.get("deletion_protection"):
            yield f"{service['name']} cannot be replaced if its first revision does not start"


def tags_are_few(state):
    for service, revisions in state.state["revisions"].items():
        tags = [tag for revision in revisions for tag in revision["tags"]]
        if len(tags) > 10:
            yield f"{service} has {len(tags)} tags: nobody removes those of old deploys"
        if len(tags) < 2:
            yield f"{service} has {len(tags)} tags: there is nothing to go back to"


def warm_instances_do_not_pile_up(state):
    wanted = 3  # examples/production: one each of trigger, evaluate and the light queue.
    if state.warm_instances() != wanted:
        yield f"{state.warm_instances()} instances stay up while nothing runs, instead of {wanted}: revisions keep a minimum of their own"


def serves(image):
    def all_traffic(state):
        for service, revisions in state.state["revisions"].items():
            serving = [revision["config"]["containers"][0]["image"] for revision in revisions if revision["percent"]]
            if len(serving) != 1 or not serving[0].endswith(image):
                yield f"{service} serves {serving} instead of {image}"

    return all_traffic


def nothing_left(state):
    left = sorted({entry["type"] for entry in state.state["resources"].values()} - ABANDONED)
    if left:
        yield f"destroy leaves {left}"
