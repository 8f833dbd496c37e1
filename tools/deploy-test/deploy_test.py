"""Tests what platform engineers do, with the real terraform and this repository's own scripts, against stand-ins for
Google's APIs, gcloud, docker and Cloud Build:

- the page docs/src/operations/first-deploy.md, command by command, with the output that it promises;
- the months after that, on examples/production: eleven deploys, a changed setting, a rollback, a restore drill, destruction;
- a restore, as docs/src/operations/disaster-recovery.md says, after a rollback;
- the loss of a region, as that page says, from a backup and with a replica;
- two installations in one project, one of them with every option of the module.

usage: deploy_test.py [--mistakes]     with --mistakes, plants each known mistake and checks that the test finds it"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent import futures

import grpc

import build
import checks
import mistakes
import sdk
from build import GCLOUD, commands
from project import Project
from project_provider import ProjectProvider, rpc

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE, RECOVERY, RUNBOOK, UPGRADE = (f"docs/src/operations/{name}.md" for name in ("first-deploy", "disaster-recovery", "runbook", "upgrade"))
# The page is followed in another region than its own, which is the default of everything.
PAGES_REGION, REGION = "us-central1", "europe-west1"
# What the test needs of the repository.
PARTS = [".ci", "terraform", "deploy", "cloudbuild.yaml", "Dockerfile", "rust-toolchain.toml", PAGE, RECOVERY, RUNBOOK, UPGRADE]
# The other commands of the page. `ebb doctor` finds nothing wrong if it is given the API's address and a token that the API
# accepts: one for its audience, of one of the accounts.
EBB = """#!/usr/bin/env bash
exec "$DEPLOY_TEST_PYTHON" "$DEPLOY_TEST_TOOLS/ebb.py" "$DEPLOY_TEST_PROJECT" "$@"
"""
JQ = """#!/usr/bin/env bash
[ "$1" = -r ] && exec "$DEPLOY_TEST_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1][1:]])' "$2"
"""
GIT = """#!/usr/bin/env bash
[ "$*" = "rev-parse --short HEAD" ] && echo 1a2b3c4
"""
# One more than tags stay.
DEPLOYS = 11


class Failed(Exception):
    """Something did not go as it must."""


class Sandbox:
    """A copy of the repository, an empty project, and the commands that act on it."""

    def __init__(self, folder, mistake=None):
        self.folder, self.repository = folder, folder / "repository"
        for part in PARTS:
            (self.repository / part).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, self.repository / part, **({"ignore": shutil.ignore_patterns(".terraform*", "check")} if copy is shutil.copytree else {}))
        self.deploys = mistake.deploys if mistake else DEPLOYS
        if mistake:
            mistake.plant(self.repository)
        self.project = Project.empty(folder / "project.json")
        commands(folder / "bin", {"gcloud": GCLOUD, "ebb": EBB, "jq": JQ, "git": GIT})

    @contextlib.contextmanager
    def serving(self):
        """Serves the provider meanwhile."""
        document = json.loads((ROOT / "terraform/check/schema.json").read_text())
        unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        server = grpc.server(futures.ThreadPoolExecutor(8), options=unlimited)
        rpc.add_ProviderServicer_to_server(ProjectProvider(document, self.project), server)
        socket = self.folder / "socket"
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        address = {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": {"Network": "unix", "String": str(socket)}}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("TF_", "CLOUDSDK_"))},
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "TF_REATTACH_PROVIDERS": json.dumps({document["source"]: address}),
            "TF_IN_AUTOMATION": "1",
            "TF_CLI_ARGS": "-no-color",
            # A page lets people answer.
            "TF_CLI_ARGS_apply": "-input=false -auto-approve",
            "TF_CLI_ARGS_destroy": "-input=false -auto-approve",
            "DEPLOY_TEST_PROJECT": str(self.project.file),
            "DEPLOY_TEST_TOOLS": str(HERE),
        }
        try:
            yield
        finally:
            server.stop(0).wait()

    def run(self, script, folder="."):
        """Runs a script and returns what it prints."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=self.repository / folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            builds = re.findall(r"^Created \[.*/builds/([0-9-]+)\]", done.stdout, re.MULTILINE)
            logs = "".join(build.log_of(self.project, identity).read_text()[-3000:] for identity in builds[-1:])
            raise Failed(f"{script}\n\n{done.stdout[-3000:]}\n{logs}\nexit code {done.returncode}")
        return done.stdout

    def follow(self, script):
        """Runs a part of a page: what one sets, the next ones use, and each begins in the folder where the last one ended."""
        kept = self.folder / "environment"
        restore = f"if [ -e {kept} ]; then . {kept}; fi"
        keep = f"{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} >{kept}"
        return self.run(f"{restore}\n{script}\n{keep}")

    def check(self, *kinds):
        with self.project.opened() as state:
            found = [problem for kind in kinds for problem in kind(state)]
        if found:
            raise Failed("\n".join(found))


# What must hold of each installation when everything is applied.
APPLIED = [
    checks.console_is_reachable, checks.limits_are_known, checks.services_can_be_replaced, checks.wake_ups_can_be_requested, checks.functions_log_in_as_themselves,
    checks.publishing_is_limited, checks.starts_with_its_database, checks.idle_is_not_billed,
]
# What must hold after a chapter of the page, by the beginning of its title.
HOLDS = {
    "3.": [*APPLIED, checks.nothing_stays_up],
    "4.": [checks.functions_may_use_tables],
    "6.": [checks.pools_hold_a_token, checks.token_can_be_sent],
    "9.": [checks.no_clone_left],
    "10.": [checks.nothing_left],
}


def follow_page(sandbox):
    """Does what the page says, and compares what it promises. Every command has a block with its output after it."""
    text = (sandbox.repository / PAGE).read_text().replace(PAGES_REGION, REGION)
    chapters = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    if missing := HOLDS.keys() - {chapter.split()[0] for chapter in chapters}:
        raise Failed(f"{PAGE} has no chapters {sorted(missing)}")
    outputs = []
    for chapter in chapters:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL)
        for (kind, script), (after, promised) in zip(blocks[::2], [*blocks[1::2], ("", "")]):
            if (kind, after) != ("sh", "text"):
                raise Failed(f"{PAGE} promises no output, in a block of `text`, of\n{script}")
            outputs.append((script, promised, sandbox.follow(script)))
        for start, holding in HOLDS.items():
            if chapter.startswith(start):
                sandbox.check(*holding)
    # A command that fails says more than one that prints something else before.
    for output in outputs:
        compare(*output)


def compare(script, promised, printed):
    rest = printed
    for line in filter(lambda line: line.strip() not in ("", "…"), promised.splitlines()):
        _before, found, rest = rest.partition(line.strip())
        if not found:
            raise Failed(f"{PAGE} promises «{line.strip()}» of\n{script}\nbut it prints\n{printed[-3000:]}")


def prepare(sandbox):
    """What there is before an installation: the images, and what terraform cannot enable."""
    images = "us-central1-docker.pkg.dev/some-project/ebbflow"
    with sandbox.project.opened() as state:
        state.state["images"] = {f"{images}/ebbflow:first": 1, f"{images}/ebbflow-worker:first": 1}
    variables = {
        "project_id": "some-project", "image": f"{images}/ebbflow:first", "worker_image": f"{images}/ebbflow-worker:first",
        "accounts": '["@example.com"]', "alert_emails": '["ada@example.com"]', "runbook_url": "https://example.com/runbook", "paging_channels": f'["{checks.PAGING}"]',
    }
    sandbox.environment.update({f"TF_VAR_{name}": value for name, value in variables.items()}, **runbook_variables(sandbox))
    sandbox.run("gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com iap.googleapis.com --project=some-project")
    sandbox.run("gcloud beta services identity create --service=iap.googleapis.com --project=some-project")


def runbook_variables(sandbox):
    """What the runbook lets people set before they do anything, apart from what they ask others for."""
    exported = (line.removeprefix("export ").split() for line in shell_blocks(sandbox, RUNBOOK)[0].splitlines() if line.startswith("export ") and "$(" not in line)
    return {name: value.replace("PROJECT", "some-project") for words in exported for name, _, value in (word.partition("=") for word in words) if value}


def install(sandbox, folder, name="ebbflow"):
    sandbox.run("terraform init -input=false && terraform apply -input=false -auto-approve", folder)
    sandbox.run(f"gcloud run jobs execute {name}-migrate --project=some-project --region=us-central1 --wait")


def set_up(sandbox, folder):
    """The first day on examples/production."""
    prepare(sandbox)
    (sandbox.repository / folder / "backend_override.tf").write_text('terraform {\n  backend "local" {}\n}\n')
    install(sandbox, folder)
    sandbox.check(*APPLIED, checks.functions_may_use_tables, checks.metrics_reach_google, checks.everything_is_watched)
    no_changes(sandbox, folder, "after the first apply")


def deploy(sandbox, tag, name="ebbflow", pools="yes"):
    sandbox.run(f"gcloud builds submit --project=some-project --gcs-source-staging-dir=gs://some-project-{name}-builds/source --substitutions=_NAME={name},_TAG={tag},_TEST=no,_POOLS={pools}")


def operate(sandbox):
    """The second month on examples/production."""
    folder = "terraform/examples/production"
    set_up(sandbox, folder)

    newest, older = f":release-{sandbox.deploys:02}", f":release-{sandbox.deploys - 1:02}"
    for number in range(1, sandbox.deploys + 1):
        deploy(sandbox, f"release-{number:02}")
    sandbox.check(checks.tags_are_few, checks.warm_instances_do_not_pile_up, checks.serves(newest))
    no_changes(sandbox, folder, "after a deploy")

    sandbox.run("terraform apply -input=false -auto-approve -var log_filter=debug", folder)
    sandbox.check(checks.serves(newest))
    sandbox.run(f".ci/rollback us-central1 {older[1:]}")
    sandbox.check(checks.serves(older))
    # The next deploy moves forward again.
    sandbox.run(next(command for command in shell_blocks(sandbox, UPGRADE)[0].splitlines() if command.startswith("eval ")))
    sandbox.check(checks.serves(":1a2b3c4"))

    sandbox.run("deploy/restore-drill some-project us-central1")
    sandbox.check(checks.no_clone_left)

    sandbox.run("terraform apply -input=false -auto-approve -var deletion_protection=false", folder)
    destroy_with_archive(sandbox, "terraform destroy -input=false -auto-approve -var deletion_protection=false", folder)
    sandbox.check(checks.nothing_left)


def destroy_with_archive(sandbox, destroy, folder):
    """Retention has archived runs, which terraform does not delete: the page says how to."""
    with sandbox.project.opened() as state:
        state.state["objects"] = ["some-project-ebbflow-archive/runs/2026-03-01/1.ndjson"]
    try:
        sandbox.run(destroy, folder)
    except Failed as refused:
        if "containing objects" not in str(refused):
            raise
    else:
        raise Failed("archived runs were deleted with the installation")
    empty = re.search(r"`(gcloud storage rm [^`]+)`", (sandbox.repository / PAGE).read_text())
    if empty is None:
        raise Failed(f"{PAGE} does not say how to empty the archive")
    sandbox.run(f"PROJECT=some-project; {empty[1]}")
    sandbox.run(destroy, folder)


def steps(sandbox, title):
    """The commands of a chapter about disasters, of each of its blocks, up to the next title."""
    chapter = (sandbox.repository / RECOVERY).read_text().split(f"\n{title}\n")[1]
    chapter = re.split(r"^##+ ", chapter, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^ *```console\n(.*?)^ *```$", chapter, re.MULTILINE | re.DOTALL)
    # The state is in a file here.
    plain = (re.sub(r" -backend-config=\S+", "", re.sub(r"^ *\$ ", "", block, flags=re.MULTILINE)) for block in blocks)
    return [re.sub(r"\bREGION\b", "us-central1", re.sub(r"\bPROJECT\b", "some-project", block)) for block in plain]


def shell_blocks(sandbox, page):
    return re.findall(r"^```sh\n(.*?)^```$", (sandbox.repository / page).read_text(), re.MULTILINE | re.DOTALL)


def set_database(sandbox, folder, **settings):
    """Edits the settings of the database."""
    main = sandbox.repository / folder / "main.tf"
    lines = "".join(f"    {name} = {json.dumps(value)}\n" for name, value in settings.items())
    main.write_text(main.read_text().replace("    iam_login = true\n", f"    iam_login = true\n{lines}"))


def restore(sandbox):
    """The day on which the database is broken, after a rollback that did not help."""
    folder = "terraform/examples/production"
    set_up(sandbox, folder)
    deploy(sandbox, "release-01")
    sandbox.run(".ci/rollback us-central1 release-01")

    stop, clone, move, resume, give_up = steps(sandbox, "## Restore")
    sandbox.run(stop)
    sandbox.check(checks.nothing_writes)
    sandbox.run(clone)
    sandbox.run(move, folder)
    set_database(sandbox, folder, instance="ebbflow-restored", password_version=2)
    sandbox.run("terraform apply -input=false -auto-approve", folder)
    deploy(sandbox, "release-02")
    sandbox.run("gcloud run jobs execute ebbflow-migrate --project=some-project --region=us-central1 --wait")
    sandbox.run(resume)
    sandbox.check(checks.works_on("ebbflow-restored"), checks.functions_log_in_as_themselves)
    no_changes(sandbox, folder, "after a restore")

    # What is given up here is the broken instance.
    sandbox.run(give_up.replace("ebbflow-restored", "ebbflow"))
    sandbox.run("terraform apply -input=false -auto-approve -var deletion_protection=false", folder)
    sandbox.run("terraform destroy -input=false -auto-approve -var deletion_protection=false", folder)
    sandbox.check(checks.nothing_left)


SUCCESSOR = "terraform/examples/region"


def lose_region(sandbox):
    """The installation is in a region that is lost."""
    (sandbox.repository / SUCCESSOR).mkdir()
    (sandbox.repository / SUCCESSOR / "backend_override.tf").write_text('terraform {\n  backend "local" {}\n}\n')
    with sandbox.project.opened() as state:
        state.state["lost"] = ["us-central1"]


def succeed(sandbox, instance):
    """The successor in another region works, and it alone; and it stays as terraform has left it."""
    sandbox.check(checks.fenced_off("ebbflow"), checks.works_on(instance, "ebbflow-west"), checks.functions_log_in_as_themselves, checks.functions_may_use_tables)
    sandbox.follow("terraform plan -input=false -detailed-exitcode")


def region(sandbox):
    """The day on which a region is lost, and its return."""
    set_up(sandbox, "terraform/examples/production")
    lose_region(sandbox)
    fence, configure, build, create, recover, let_in, give_up = steps(sandbox, "## Loss of a region")
    for step in (fence, configure, build, create, recover):
        sandbox.follow(step)
    set_database(sandbox, SUCCESSOR, password_version=2)
    sandbox.follow(let_in)
    succeed(sandbox, "ebbflow-west")

    with sandbox.project.opened() as state:
        state.state["lost"] = []
    sandbox.run(give_up, "terraform/examples/production")
    succeed(sandbox, "ebbflow-west")
    sandbox.follow("terraform apply -var deletion_protection=false && terraform destroy -var deletion_protection=false")
    sandbox.check(checks.nothing_left)


def replica(sandbox):
    """The same day, with a replica."""
    set_up(sandbox, "terraform/examples/production")
    prepare_replica, promote, take_over = steps(sandbox, "### With a replica")
    sandbox.run(prepare_replica)
    lose_region(sandbox)
    fence, configure, build, _create, _recover, let_in, _give_up = steps(sandbox, "## Loss of a region")
    for step in (fence, configure, build, promote):
        sandbox.follow(step)
    set_database(sandbox, SUCCESSOR, instance="ebbflow-replica")
    sandbox.follow(take_over)
    sandbox.follow(let_in)
    succeed(sandbox, "ebbflow-replica")


# What the module can do besides what the examples do.
OPTIONS = """
  domain           = { console = "ebbflow.example.com", api = "api.ebbflow.example.com" }
  build_trigger    = { repository = "projects/some-project/locations/us-central1/connections/github/repositories/ebbflow" }
  database_hours   = { start = "0 7 * * 1-5", stop = "0 20 * * 1-5" }
  archive          = {}
  event_topics     = ["orders"]
  workflow_secrets = { acme = ["api-key"] }
  database_people  = ["ada@example.com"]
  otlp             = { endpoint = "https://collector.example.com", headers_secret = "collector-headers" }
  queues           = { light = {}, gpu = { kind = "pool", token_secret = "worker-token" } }
"""


def share(sandbox):
    """Two installations in a project. Their names begin alike."""
    prepare(sandbox)
    with sandbox.project.opened() as state:
        state.state["secrets"] = {name: ["a value"] for name in ("worker-token", "collector-headers", "ebb-test_acme_api-key")}
    small = (sandbox.repository / "terraform/examples/small/main.tf").read_text()
    folders = {name: f"terraform/examples/{name}" for name in ("ebb", "ebb-test")}
    for name, options in {"ebb": "", "ebb-test": OPTIONS}.items():
        (sandbox.repository / folders[name]).mkdir()
        # Its queues are among the options.
        main = re.sub(r"\n  # Execute services run.*?\n  \)\n", lambda _: options, small.replace("var.name", f'"{name}"'), flags=re.DOTALL)
        (sandbox.repository / folders[name] / "main.tf").write_text(main)
        install(sandbox, folders[name], name)
    sandbox.check(checks.functions_log_in_as_themselves, checks.functions_may_use_tables, checks.pools_hold_a_token)

    deploy(sandbox, "release-01", "ebb")
    sandbox.run(".ci/rollback us-central1 release-01 ebb")
    sandbox.check(checks.serves(":release-01", "ebb"), checks.serves(":first", "ebb-test"), checks.pools_run(":first", "ebb-test-worker-gpu"))
    deploy(sandbox, "release-02", "ebb-test", pools="no")
    sandbox.check(checks.serves(":release-02", "ebb-test"), checks.pools_run(":first", "ebb-test-worker-gpu"))
    deploy(sandbox, "release-03", "ebb-test")
    sandbox.check(checks.serves(":release-01", "ebb"), checks.serves(":release-03", "ebb-test"), checks.pools_run(":release-03", "ebb-test-worker-gpu"))
    no_changes(sandbox, folders["ebb-test"], "after a deploy")

    deploy(sandbox, "release-03", "ebb-test")
    sandbox.run(".ci/rollback us-central1 release-02 ebb-test")
    sandbox.check(checks.serves(":release-02", "ebb-test"), checks.pools_run(":release-02", "ebb-test-worker-gpu"), checks.serves(":release-01", "ebb"))

    sandbox.run("terraform destroy -input=false -auto-approve", folders["ebb-test"])
    sandbox.check(checks.apis_are_enabled)
    no_changes(sandbox, folders["ebb"], "after another installation was destroyed")
    sandbox.run("terraform destroy -input=false -auto-approve", folders["ebb"])
    sandbox.check(checks.nothing_left)


def no_changes(sandbox, folder, when):
    try:
        sandbox.run("terraform plan -input=false -detailed-exitcode", folder)
    except Failed as failed:
        raise Failed(f"terraform wants changes {when}:\n{failed}") from None


TEST_PARTS = {"page": follow_page, "operation": operate, "restore": restore, "region": region, "replica": replica, "share": share}


def run_part(part, mistake=None):
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(pathlib.Path(folder), mistake)
        with sandbox.serving():
            TEST_PARTS[part](sandbox)


def finds(mistake):
    """Whether the test fails because of a planted mistake, and says so. A mistake that cannot be planted is not found."""
    try:
        run_part(mistake.part, mistake)
    except mistakes.Unplantable as outdated:
        return f"not planted: {outdated}"
    except Failed as failed:
        if re.search(mistake.reported, str(failed)):
            return None
        return f"{mistake.name}: found, but for another reason than /{mistake.reported}/:\n{failed}"
    return f"{mistake.name}: not found"


def main():
    if sys.argv[1:] == ["--mistakes"]:
        # Each takes half a gigabyte.
        with futures.ThreadPoolExecutor(max(2, min(8, os.cpu_count()))) as pool:
            missed = [problem for problem in pool.map(finds, mistakes.ALL) if problem]
        print("\n".join(missed) or f"All {len(mistakes.ALL)} planted mistakes are found.")
        return bool(missed)
    if problems := [*mistakes.outdated(ROOT), *sdk.unknown()]:
        print("\n".join(problems))
        return 1
    for part in TEST_PARTS:
        try:
            run_part(part)
        except Failed as failed:
            print(f"{part}: {failed}")
            return 1
        print(f"{part}: ok")
    return 0


sys.exit(main())
