"""The docker command of the test: `buildx build --push` puts an image into the project's registry.

usage: docker.py PROJECT.json ARGUMENT..."""
import os
import pathlib
import re
import sys

from project import Project


def fail(text):
    sys.exit(f"ERROR: {text}")


def push(project, arguments):
    values = {flag: arguments[place + 1] for place, flag in enumerate(arguments) if flag in ("--target", "--tag", "--cache-to")}
    stages = re.findall(r"^FROM .* AS (\w+)$", pathlib.Path("Dockerfile").read_text(), re.MULTILINE)
    if values["--target"] not in stages:
        fail(f"target stage {values['--target']} could not be found")
    host, owner, repository, _name = values["--tag"].split("/", 3)
    region = host.removesuffix("-docker.pkg.dev")
    with project.opened() as state:
        account = os.environ["DEPLOY_TEST_ACCOUNT"]
        if state.find("google_artifact_registry_repository", repository_id=repository, project=owner, location=region) is None:
            fail(f'name unknown: Repository "{repository}" not found in {region}')
        if not state.granted("google_artifact_registry_repository_iam_member", "roles/artifactregistry.writer", account):
            fail("denied: Permission \"artifactregistry.repositories.uploadArtifacts\" denied")
        state.state["images"][values["--tag"]] = 50_000_000


def main():
    project_file, *arguments = sys.argv[1:]
    project = Project(project_file)
    if arguments[:2] == ["buildx", "build"] and "--push" in arguments:
        push(project, arguments)
    elif arguments[:2] == ["image", "inspect"]:
        with project.opened() as state:
            print(state.state["images"][arguments[-1]])
    elif arguments[:2] != ["buildx", "create"] and arguments[0] != "pull":
        fail(f"the test does not know docker {' '.join(arguments)}")


main()
