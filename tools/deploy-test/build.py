"""Cloud Build in the test: runs the steps of cloudbuild.yaml, each with the commands that its image has."""
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

from language import printed
from project import NUMBER, Refused

# What `gcloud builds submit` prints instead of the output of steps, if this goes to Cloud Logging.
NOT_DISPLAYED = """gcloud builds submit only displays logs from Cloud Storage. To view logs from Cloud Logging, run:
gcloud beta builds submit"""
# What the images of the steps bring along, besides what every Linux has. The official Rust image has the minimal profile.
# An advisory about a dependency may be published at any time, such as the day of a first build.
CARGO = """#!/usr/bin/env bash
case ${1:-} in
fmt | clippy)
    component=$([ "$1" = fmt ] && echo rustfmt || echo clippy)
    grep -qsx "$component" "$DEPLOY_TEST_STEP/components" || { echo "error: 'cargo-$1' is not installed for the toolchain '1.95.0-x86_64-unknown-linux-gnu'." >&2; exit 1; } ;;
deny) [ "$_TEST" = yes ] || { echo "error[unmaintained]: an advisory of today" >&2; exit 1; } ;;
esac
"""
RUSTUP = """#!/usr/bin/env bash
[ "$1 $2" = "component add" ] && printf '%s\\n' "${@:3}" >>"$DEPLOY_TEST_STEP/components"
"""
DOCKER = """#!/usr/bin/env bash
exec python3 "$DEPLOY_TEST_TOOLS/docker.py" "$DEPLOY_TEST_PROJECT" "$@"
"""
GCLOUD = """#!/usr/bin/env bash
exec "$DEPLOY_TEST_PYTHON" "$DEPLOY_TEST_TOOLS/gcloud.py" "$DEPLOY_TEST_PROJECT" "$@"
"""
# Of the gate's tools, only whether they are there is tested.
PLAIN = """#!/bin/sh
exit 0
"""
NEEDS_TERRAFORM = """#!/usr/bin/env bash
[ "$(command -v terraform)" = "$PWD/target/tools/terraform" ] || { echo "skipped: terraform is not installed" >&2; exit 3; }
"""
IMAGES = {
    "hashicorp/terraform:": {"terraform": PLAIN},
    "rust:": {"cargo": CARGO, "rustup": RUSTUP, "apt-get": PLAIN},
    "gcr.io/cloud-builders/docker": {"docker": DOCKER},
    "gcr.io/google.com/cloudsdktool/google-cloud-cli": {"gcloud": GCLOUD},
}
# The gate itself does not run here, only the way it is started is tested. Without Python's packages, the gate skips what needs them.
STUBS = {"tests/run": PLAIN, "terraform/check/run": NEEDS_TERRAFORM, "tools/deploy-test/run": NEEDS_TERRAFORM, ".ci/python": "#!/bin/sh\necho true\n"}


def commands(folder, scripts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def substituted(text, values):
    """Replaces ${_NAME} and $_NAME in a field that Cloud Build substitutes."""
    return re.sub(r"\$\{?(_?[A-Z][A-Z_]*)\}?", lambda match: values[match[1]], text)


def builds_submit(project, call):
    source = pathlib.Path(call.names[0] if call.names else ".").resolve()
    config = yaml.safe_load((pathlib.Path(call.flags["--config"]) if "--config" in call.flags else source / "cloudbuild.yaml").read_text())
    with project.opened() as state:
        state.require_api("cloudbuild")
        project_id = state.project_id()
    values = {**config["substitutions"], **call.map("--substitutions"), "PROJECT_ID": project_id}
    unknown = call.map("--substitutions").keys() - config["substitutions"].keys()
    if unknown:
        raise Refused(f"INVALID_ARGUMENT: {sorted(unknown)} are not substitutions of the build")
    for name in config["substitutions"]:
        values[name] = substituted(values[name], values)
    account = substituted(config["serviceAccount"], values).split("/")[-1]
    require_account(project, account, call.flags.get("--gcs-source-staging-dir"))
    with project.opened() as state:
        identity = f"{state.next_number():08}-0000-4000-8000-{NUMBER}"
        state.state["builds"].append(identity)
    print(f"Created [https://cloudbuild.googleapis.com/v1/projects/{project_id}/locations/global/builds/{identity}].")
    print(f"Logs are available at [ https://console.cloud.google.com/cloud-build/builds/{identity}?project={NUMBER} ].")
    if config["options"]["logging"] == "CLOUD_LOGGING_ONLY":
        print(f"\n{NOT_DISPLAYED}\n")
    print("Waiting for build to complete. Polling interval: 1 second(s).", flush=True)
    with tempfile.TemporaryDirectory() as folder, log_of(project, identity).open("w") as log:
        # Steps share what they write here, and nothing else.
        workspace = pathlib.Path(folder) / "workspace"
        subprocess.run(["cp", "-r", source, workspace], check=True)
        for stub, script in STUBS.items():
            commands((workspace / stub).parent, {pathlib.Path(stub).name: script})
        for number, step in enumerate(config["steps"]):
            if code := run_step(project, workspace, step, values, account, log):
                failure = f'build step {number} "{step["name"]}" failed: step exited with non-zero status: {code}'
                log.write(f"ERROR: {failure}\n")
                print(f"\nBUILD FAILURE: Build step failure: {failure}")
                raise Refused(f'build {identity} completed with status "FAILURE"')
    print(f"ID                                    CREATE_TIME                DURATION  SOURCE  IMAGES  STATUS\n{identity}  2026-09-01T09:00:00+00:00  10M     gs://…  -       SUCCESS")


def log_of(project, identity):
    """Where the test keeps what the steps of a build have printed, which Google keeps in Cloud Logging."""
    return project.file.parent / f"{identity}.log"


def builds_list(project, call):
    with project.opened() as state:
        newest = state.state["builds"][::-1]
    for identity in newest[: int(call.flags["--limit"])]:
        print(printed({"id": identity}, call.flags["--format"]))


def builds_log(project, call):
    """Also prints what is in Cloud Logging, unlike `builds submit`."""
    print(f"{' REMOTE BUILD OUTPUT ':-^80}\n{log_of(project, call.names[0]).read_text()}{'':-^80}")


def require_account(project, account, staging):
    with project.opened() as state:
        if state.find("google_service_account", email=account) is None:
            raise Refused(f"NOT_FOUND: service account {account} does not exist")
        if not state.granted("google_project_iam_member", "roles/logging.logWriter", account):
            raise Refused(f"{account} may not write logs")
        everywhere = state.granted("google_project_iam_member", "roles/storage.objectViewer", account)
        bucket = (staging or f"gs://{state.project_id()}_cloudbuild").removeprefix("gs://").split("/")[0]
        if staging and state.find("google_storage_bucket", name=bucket) is None:
            raise Refused(f"The bucket {bucket} does not exist")
        if not everywhere and not state.granted("google_storage_bucket_iam_member", "roles/storage.objectViewer", account, bucket=bucket):
            raise Refused(f"{account} does not have storage.objects.get access to gs://{bucket}")


def run_step(project, workspace, step, values, account, log):
    """Runs a step, whose output goes to the log, and returns its exit code."""
    tools = next((commands for image, commands in IMAGES.items() if step["name"].startswith(image)), None)
    if tools is None:
        raise Refused(f"the test does not know the image {step['name']}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands(folder / "bin", tools)
        (folder / "script").write_text(step["script"])
        here = pathlib.Path(__file__).parent
        plain = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": name, "PYTHONDONTWRITEBYTECODE": "1", "DEPLOY_TEST_STEP": name, "DEPLOY_TEST_TOOLS": str(here)}
        shared = {"DEPLOY_TEST_PROJECT": str(project.file), "DEPLOY_TEST_ACCOUNT": account, "DEPLOY_TEST_PYTHON": os.environ["DEPLOY_TEST_PYTHON"], "CLOUDSDK_CORE_PROJECT": values["PROJECT_ID"]}
        log.write(f'Starting Step "{step["id"]}"\n')
        log.flush()
        return subprocess.run(["bash", str(folder / "script")], cwd=workspace, env={**plain, **shared, **values}, stdout=log, stderr=log).returncode
