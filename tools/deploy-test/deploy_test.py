"""Tests what platform engineers do, with the real terraform and this repository's own scripts, against stand-ins for
Google's APIs, gcloud, docker and Cloud Build:

- the page docs/src/operations/first-deploy.md, command by command, with the output that it promises;
- the months after that, on examples/production: eleven deploys, a changed setting, a rollback, destruction.

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

import checks
import mistakes
from build import GCLOUD, commands
from project import Project
from project_provider import ProjectProvider, rpc

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = "docs/src/operations/first-deploy.md"
# What the test needs of the repository.
PARTS = [".ci", "terraform", "deploy", "cloudbuild.yaml", "Dockerfile", "rust-toolchain.toml", PAGE]
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
        commands(folder / "bin", {"gcloud": GCLOUD})

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
            raise Failed(f"{script}\n\n{done.stdout[-3000:]}\nexit code {done.returncode}")
        return done.stdout

    def check(self, *kinds):
        with self.project.opened() as state:
            found = [problem for kind in kinds for problem in kind(state)]
        if found:
            raise Failed("\n".join(found))


def follow_page(sandbox):
    """Does what the page says, and compares what it promises."""
    text = (sandbox.repository / PAGE).read_text()
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    scripts = [script for kind, script in blocks if kind == "sh"]
    printed = sandbox.run("".join(f'echo "@@ {place}"\n{script}\n' for place, script in enumerate(scripts)))
    sections = dict(zip(range(len(scripts)), re.split(r"^@@ \d+\n", printed, flags=re.MULTILINE)[1:]))
    place = -1
    for kind, block in blocks:
        if kind == "sh":
            place += 1
            continue
        rest = sections[place]
        for line in filter(lambda line: line.strip() not in ("", "…"), block.splitlines()):
            _before, found, rest = rest.partition(line.strip())
            if not found:
                raise Failed(f"{PAGE} promises «{line.strip()}» of\n{scripts[place]}\nbut it prints\n{sections[place][-3000:]}")
    sandbox.check(checks.nothing_left)


def operate(sandbox):
    """The second month on examples/production."""
    folder = "terraform/examples/production"
    (sandbox.repository / folder / "backend_override.tf").write_text('terraform {\n  backend "local" {}\n}\n')
    images = "us-central1-docker.pkg.dev/some-project/ebbflow"
    with sandbox.project.opened() as state:
        state.state["images"] = {f"{images}/ebbflow:first": 1, f"{images}/ebbflow-worker:first": 1}
    variables = {
        "project_id": "some-project", "image": f"{images}/ebbflow:first", "worker_image": f"{images}/ebbflow-worker:first",
        "accounts": '["@example.com"]', "alert_emails": '["ada@example.com"]', "runbook_url": "https://example.com/runbook",
    }
    sandbox.environment.update({f"TF_VAR_{name}": value for name, value in variables.items()})
    sandbox.run("gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com iap.googleapis.com --project=some-project")
    sandbox.run("gcloud beta services identity create --service=iap.googleapis.com --project=some-project")
    sandbox.run("terraform init -input=false && terraform apply -input=false -auto-approve", folder)
    sandbox.run("gcloud run jobs execute ebbflow-migrate --project=some-project --region=us-central1 --wait")
    no_changes(sandbox, folder, "after the first apply")
    sandbox.check(checks.console_is_reachable, checks.limits_are_known, checks.services_can_be_replaced)

    newest, older = f":release-{sandbox.deploys:02}", f":release-{sandbox.deploys - 1:02}"
    for number in range(1, sandbox.deploys + 1):
        sandbox.run(f"gcloud builds submit --project=some-project --gcs-source-staging-dir=gs://some-project-ebbflow-builds/source --substitutions=_TAG=release-{number:02},_TEST=no")
    sandbox.check(checks.tags_are_few, checks.warm_instances_do_not_pile_up, checks.serves(newest))
    no_changes(sandbox, folder, "after a deploy")

    sandbox.run("terraform apply -input=false -auto-approve -var log_filter=debug", folder)
    sandbox.check(checks.serves(newest))
    sandbox.run(f".ci/rollback us-central1 {older[1:]}")
    sandbox.check(checks.serves(older))

    sandbox.run("terraform apply -input=false -auto-approve -var deletion_protection=false", folder)
    sandbox.run("terraform destroy -input=false -auto-approve -var deletion_protection=false", folder)
    sandbox.check(checks.nothing_left)


def no_changes(sandbox, folder, when):
    try:
        sandbox.run("terraform plan -input=false -detailed-exitcode", folder)
    except Failed as failed:
        raise Failed(f"terraform wants changes {when}:\n{failed}") from None


TEST_PARTS = {"page": follow_page, "operation": operate}


def run_part(part, mistake=None):
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(pathlib.Path(folder), mistake)
        with sandbox.serving():
            TEST_PARTS[part](sandbox)


def finds(mistake):
    """Whether the test fails because of a planted mistake, and says so."""
    try:
        run_part(mistake.part, mistake)
    except Failed as failed:
        if re.search(mistake.told, str(failed)):
            return None
        return f"{mistake.name}: found, but for another reason than /{mistake.told}/:\n{failed}"
    return f"{mistake.name}: not found"


def main():
    if sys.argv[1:] == ["--mistakes"]:
        with futures.ThreadPoolExecutor(2) as pool:
            missed = [problem for problem in pool.map(finds, mistakes.ALL) if problem]
        print("\n".join(missed) or f"All {len(mistakes.ALL)} planted mistakes are found.")
        return bool(missed)
    for part in TEST_PARTS:
        try:
            run_part(part)
        except Failed as failed:
            print(f"{part}: {failed}")
            return 1
        print(f"{part}: ok")
    return 0


sys.exit(main())
