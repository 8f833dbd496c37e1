"""What must hold in the project at some moment of the test. Each check returns the problems it finds."""
import json
import re
from urllib.parse import unquote

from project import NUMBER

# An event stream ends itself after a quarter of an hour.
STREAM_SECONDS = 15 * 60
# What stays when everything is destroyed: APIs, and what goes with its parent.
ABANDONED = {"google_project_service", "google_sql_user", "google_sql_database", "google_service_networking_connection"}


def environment(service):
    return {env["name"]: env.get("value") for env in service["template"][0]["containers"][0]["env"]}


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
    """No timeout cuts what a function does in good faith, and those who register workflows know what the queues can do."""
    by_name = {service["name"]: service for service in state.of_type("google_cloud_run_v2_service")}
    for name, service in by_name.items():
        timeout = int(service["template"][0]["timeout"].rstrip("s"))
        if environment(service).get("EBB_REQUEST_SECONDS") != str(timeout):
            yield f"{name} does not know that its requests end after {timeout} s"
        if service["labels"]["function"] in ("console", "trigger") and timeout <= STREAM_SECONDS:
            yield f"{name} cuts event streams after {timeout} s"
        listed = dict(entry.split("=") for entry in (environment(service).get("EBB_QUEUES") or "").split(",") if entry)
        for other, execute in by_name.items():
            queue = environment(execute).get("EBB_QUEUE")
            if queue and listed.get(queue) != execute["template"][0]["timeout"].rstrip("s"):
                yield f"{name} accepts attempts of {listed.get(queue)} s on the queue {queue}, and {other} ends them"
    for subscription in state.of_type("google_pubsub_subscription"):
        host = subscription["push_config"][0]["push_endpoint"].split("//")[1].split("-abcdefghij")[0]
        function = by_name[host]["labels"]["function"]
        if function != "trigger" and int(by_name[host]["template"][0]["timeout"].rstrip("s")) > subscription["ack_deadline_seconds"]:
            yield f"{subscription['name']} delivers a message again while {host} still works on it"


def wake_ups_can_be_requested(state):
    """The sweep may create tasks that call it. A task carries a token of the invoker: its creator must have the right to act as
    that account, and Cloud Tasks says so only when a task is created."""
    sweep = next(service for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["function"] == "sweep")
    variables, account = environment(sweep), sweep["template"][0]["service_account"]
    queue = state.find("google_cloud_tasks_queue", name=(variables.get("EBB_WAKE_QUEUE") or "").rpartition("/")[2])
    if queue is None or variables.get("EBB_WAKE") != "tasks":
        yield "nothing wakes the sweep when a timer is due"
        return
    if variables["EBB_WAKE_QUEUE"] != f"projects/{queue['project']}/locations/{queue['location']}/queues/{queue['name']}":
        yield f"there is no queue {variables['EBB_WAKE_QUEUE']}"
    if not state.granted("google_cloud_tasks_queue_iam_member", "roles/cloudtasks.enqueuer", account, name=queue["name"]):
        yield "the sweep may not create tasks"
    invoker = f"projects/{queue['project']}/serviceAccounts/{variables['EBB_PUSH_ACCOUNT']}"
    if not state.granted("google_service_account_iam_member", "roles/iam.serviceAccountUser", account, service_account_id=invoker):
        yield "the sweep may not act as the account whose token its tasks carry"


def functions_log_in_as_themselves(state):
    """No function knows a password, and each may log in with its own account. Cloud SQL refuses a login without the role."""
    users = {user["name"] for user in state.of_type("google_sql_user") if user.get("type") == "CLOUD_IAM_SERVICE_ACCOUNT"}
    for service in state.of_type("google_cloud_run_v2_service"):
        name, account = service["name"], service["template"][0]["service_account"]
        url = environment(service).get("DATABASE_URL")
        if not url:
            yield f"{name} logs in with a password"
        elif unquote(url.split("//")[1].split("@localhost")[0]) != account.removesuffix(".gserviceaccount.com") or account.removesuffix(".gserviceaccount.com") not in users:
            yield f"the database does not know the user of {name}"
        for role in ("roles/cloudsql.client", "roles/cloudsql.instanceUser"):
            if not state.granted("google_project_iam_member", role, account):
                yield f"{name} may not log in without {role}"


def functions_may_use_tables(state):
    """A function that logs in as itself has no rights but to assume the role that owns the tables, which the migration grants."""
    for user in state.of_type("google_sql_user"):
        if user.get("type") == "CLOUD_IAM_SERVICE_ACCOUNT" and user["name"] not in state.state["members"]:
            yield f"{user['name']} may use no table"


def metrics_reach_google(state):
    """Functions send their metrics to Google, with what its endpoint requires."""
    if "telemetry.googleapis.com" not in state.state["apis"]:
        yield "the API that receives metrics is not enabled"
    for service in state.of_type("google_cloud_run_v2_service"):
        variables, account = environment(service), service["template"][0]["service_account"]
        if (variables.get("EBB_OTLP_ENDPOINT"), variables.get("EBB_OTLP_AUTH")) != ("https://telemetry.googleapis.com", "google"):
            yield f"{service['name']} sends its metrics without a token"
        if variables.get("EBB_REGION") != service["location"]:
            yield f"{service['name']} does not say in which region it is"
        for role in ("roles/telemetry.writer", "roles/serviceusage.serviceUsageConsumer"):
            if not state.granted("google_project_iam_member", role, account):
                yield f"{service['name']} may not send its metrics without {role}"


def publishing_is_limited(state):
    """Each function publishes to the topics of commands, and to nothing else."""
    topics = {topic["name"] for topic in state.of_type("google_pubsub_topic") if not topic["name"].endswith("-dead-letters")}
    for service in state.of_type("google_cloud_run_v2_service"):
        member = f"serviceAccount:{service['template'][0]['service_account']}"
        granted = {entry["topic"] for entry in state.of_type("google_pubsub_topic_iam_member") if entry["member"] == member}
        if granted != topics:
            yield f"{service['name']} publishes to {sorted(granted)} instead of {sorted(topics)}"
        if any(entry["member"] == member and entry["role"].startswith("roles/pubsub.") for entry in state.of_type("google_project_iam_member")):
            yield f"{service['name']} may publish anywhere"


# The channel of the person on call.
PAGING = "projects/some-project/notificationChannels/1"
# What must not go wrong unnoticed.
ALERTS = {
    "service down", "failure rate", "task failures", "slow tasks", "database disk", "database cpu", "backup failed", "too many requests", "workers missing",
}


def everything_is_watched(state):
    """Somebody is notified of what goes wrong, and of nothing else; and nobody pays for log lines that say nothing."""
    policies = {policy["display_name"].split(": ")[1]: policy for policy in state.of_type("google_monitoring_alert_policy")}
    if missing := sorted(ALERTS - policies.keys()):
        yield f"there are no alerts on {missing}"
    for name, policy in policies.items():
        if (PAGING in policy["notification_channels"]) != (policy["severity"] == "CRITICAL"):
            yield f"the alert on {name} is {policy['severity']}, and goes to {policy['notification_channels']}"
        for condition in policy["conditions"]:
            query = "".join(prometheus["query"] for prometheus in condition["condition_prometheus_query_language"] or [])
            if name == "failure rate" and not query.endswith(">= 5"):
                yield "one failed run of one raises an alert"
            if name == "workers missing" and 'response_code_class="2xx"' not in query:
                yield "a queue that is merely long pages somebody"
    for check in state.of_type("google_monitoring_uptime_check_config"):
        if check["http_check"][0]["path"].endswith("z"):
            yield "Google's own front end answers the uptime check"
        if int(check["timeout"].rstrip("s")) < 60:
            yield "an instance that the uptime check starts has no time to reach its database"
    internal = [service["name"] for service in state.of_type("google_cloud_run_v2_service") if service["ingress"] == "INGRESS_TRAFFIC_INTERNAL_ONLY"]
    filters = [exclusion["filter"] for exclusion in state.of_type("google_logging_project_exclusion")]
    patterns = [re.search(r'service_name=~"([^"]+)"', each)[1] for each in filters if "httpRequest.status<300" in each and "run.googleapis.com%2Frequests" in each]
    for name in internal:
        if not any(re.fullmatch(pattern, name) for pattern in patterns):
            yield f"every successful push to {name} is logged and billed"


def starts_with_its_database(state):
    """An instance is started once it has reached its database. Cloud Run gives an idle instance CPU only for its probes: without
    them, it would not close the connections that it does not use."""
    for service in state.of_type("google_cloud_run_v2_service"):
        container = service["template"][0]["containers"][0]
        if container["startup_probe"][0]["http_get"][0]["path"] != "/started":
            yield f"{service['name']} receives requests before it reaches its database"
        probes = container["liveness_probe"] or [{"period_seconds": 3600}]
        if probes[0]["period_seconds"] > 60:
            yield f"{service['name']} keeps its connections while it is idle"


def idle_is_not_billed(state):
    """While nothing is due, nothing runs and nothing wakes the database, but for a tick once an hour."""
    for service in state.of_type("google_cloud_run_v2_service"):
        if not service["template"][0]["containers"][0]["resources"][0]["cpu_idle"]:
            yield f"{service['name']} is billed while it handles no request"
    for job in state.of_type("google_cloud_scheduler_job"):
        if job["schedule"] != "0 * * * *":
            yield f"{job['name']} wakes the database more than once an hour: {job['schedule']}"


def nothing_stays_up(state):
    if state.warm_instances():
        yield f"{state.warm_instances()} instances stay up while nothing runs"


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


def serves(image, installation="ebbflow"):
    def all_traffic(state):
        names = [service["name"] for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["installation"] == installation]
        for service, revisions in ((name, state.state["revisions"][name]) for name in names):
            serving = [revision["config"]["containers"][0]["image"] for revision in revisions if revision["percent"]]
            if len(serving) != 1 or not serving[0].endswith(image):
                yield f"{service} serves {serving} instead of {image}"

    return all_traffic


def nothing_writes(state):
    """Nothing that would write to the database receives a message or a request."""
    for kind in ("google_cloud_scheduler_job", "google_cloud_tasks_queue"):
        for waking in state.of_type(kind):
            if waking["id"] not in state.state["paused"]:
                yield f"{waking['name']} still wakes the sweep"
    for subscription in state.of_type("google_pubsub_subscription"):
        if subscription["push_config"]:
            yield f"{subscription['name']} still pushes"
    for service in state.of_type("google_cloud_run_v2_service"):
        if service["ingress"] != "INGRESS_TRAFFIC_INTERNAL_ONLY":
            yield f"people still reach {service['name']}"


def services_of(state, installation):
    return [service for service in state.of_type("google_cloud_run_v2_service") if service["labels"]["installation"] == installation]


def works_on(instance, installation="ebbflow"):
    def everything_works(state):
        services = services_of(state, installation)
        if missing := sorted({service["name"] for service in services} - {*state.uses_database(instance)}):
            yield f"{missing} do not serve with {instance}"
        for subscription in state.of_type("google_pubsub_subscription"):
            if subscription["name"].startswith(f"{installation}-") and not subscription["push_config"]:
                yield f"{subscription['name']} does not push"
        for name in ("trigger", "console"):
            if not any(service["labels"]["function"] == name and service["ingress"] == "INGRESS_TRAFFIC_ALL" for service in services):
                yield f"nobody reaches {name}"
        yield from (f"{name} is still paused" for name in state.state["paused"])

    return everything_works


def fenced_off(installation):
    """An installation whose region is lost cannot do anything when the region returns: its accounts are disabled."""

    def cannot_act(state):
        accounts = {service["template"][0]["service_account"] for service in services_of(state, installation)}
        invoked = {environment(service)["EBB_PUSH_ACCOUNT"] for service in services_of(state, installation)}
        for email in sorted(accounts | invoked):
            if not state.find("google_service_account", email=email)["disabled"]:
                yield f"{email} acts beside its successor"
        for account in state.of_type("google_service_account"):
            if account["disabled"] and account["email"] not in accounts | invoked:
                yield f"{account['email']} is disabled"

    return cannot_act


def no_clone_left(state):
    """A clone is billed like its original, and its backups are billed for as long as they exist."""
    for name in state.state["clones"]:
        yield f"{name} is still there, and billed"
    for name in state.state["backups"]:
        yield f"the backups of {name} are still there, and billed"


def api_address(state, installation):
    """Where programs reach the API: through the load balancer, if there is one, or on run.app."""
    trigger = next(service for service in services_of(state, installation) if service["labels"]["function"] == "trigger")
    if trigger["ingress"] == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER":
        rules = state.find("google_compute_url_map", name=f"{installation}-front")["host_rule"]
        return "https://" + next(rule["hosts"][0] for rule in rules if rule["path_matcher"] == "trigger")
    return f"https://{trigger['name']}-{NUMBER}.{trigger['location']}.run.app"


# The variables of a worker.
WORKER_VARIABLES = {"EBB_URL", "EBB_TOKEN", "RUST_LOG", "EBB_EGRESS_ONLY", "EBB_EGRESS_ALLOW", "EBB_TASK_NETWORK"}


def pools_hold_a_token(state):
    """A worker runs code of users: all that it has is the address of the API and a token, and its account may do nothing but read
    that token."""
    for pool in state.of_type("google_cloud_run_v2_worker_pool"):
        name, template = pool["name"], pool["template"][0]
        variables = template["containers"][0]["env"]
        if template.get("volumes") or template.get("vpc_access"):
            yield f"{name} is in the network of the database"
        if unknown := sorted({each["name"] for each in variables} - WORKER_VARIABLES):
            yield f"{name} also has the variables {unknown}"
        if (url := environment(pool).get("EBB_URL")) != (expected := api_address(state, pool["labels"]["installation"])):
            yield f"{name} leases tasks at {url} instead of {expected}"
        secrets = [(each["name"], source["secret_key_ref"][0]["secret"]) for each in variables for source in each["value_source"] or []]
        if [variable for variable, _ in secrets] != ["EBB_TOKEN"]:
            yield f"{name} is given {secrets} instead of a token"
        grants = [
            (entry["value"]["role"], entry["value"].get("secret_id"))
            for entry in state.state["resources"].values()
            if "role" in entry["value"] and entry["value"].get("member") == f"serviceAccount:{template['service_account']}"
        ]
        if grants != [("roles/secretmanager.secretAccessor", secret) for _, secret in secrets]:
            yield f"the account of {name} has {grants} instead of its token alone"


def token_can_be_sent(state):
    """A header has no line breaks, and `gcloud secrets create` keeps what it is given."""
    for name, values in state.state["secrets"].items():
        if any(value != value.strip() for value in values):
            yield f"the secret {name} ends with a line break"


def apis_are_enabled(state):
    for service in state.of_type("google_project_service"):
        if service["service"] not in state.state["apis"]:
            yield f"{service['service']} was disabled with another installation"


def pools_run(image, pool):
    def all_of_them(state):
        used = state.find("google_cloud_run_v2_worker_pool", name=pool)["template"][0]["containers"][0]["image"]
        if not used.endswith(image):
            yield f"{pool} runs {used} instead of {image}"

    return all_of_them


def nothing_left(state):
    left = sorted({entry["type"] for entry in state.state["resources"].values()} - ABANDONED)
    if left:
        yield f"destroy leaves {left}"
