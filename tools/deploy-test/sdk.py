"""Compares the gcloud commands of this repository, in scripts, documents and messages, and those of the stand-in, with gcloud
itself, where it is installed: each must exist outside the tracks that it does not name, with its flags; and the stand-in must
understand filters and formats as gcloud does."""
import ast
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from build import NOT_DISPLAYED
from gcloud import COMMANDS
from language import FORMATS, kept, printed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ["cloudbuild.yaml", ".ci/rollback", "deploy/restore-drill", "README.md", "cli/src", "docs/src", "terraform"]
TEXTS = {"", ".yaml", ".md", ".rs", ".tf"}
# What ends a command in a script, or in the sentence that mentions it.
END = re.compile(r"[`|;)\"']|&&|\s#|\\n|$")

# A resource that has everything that is printed. What serves has no tag, as after a deploy.
RESOURCE = {
    "name": "a-name",
    "id": "1700000000002",
    "email": "ebb-sweep@some-project.iam.gserviceaccount.com",
    "state": "RUNNABLE",
    "ipAddresses": [{"ipAddress": "10.0.0.3"}],
    "metadata": {"name": "ebb-sweep"},
    "spec": {"template": {"spec": {"containers": [{"image": "us-central1-docker.pkg.dev/some-project/ebb/ebbflow-worker:a"}]}}},
    "status": {
        "latestCreatedRevisionName": "ebb-sweep-00003-abc",
        "traffic": [{"revisionName": "ebb-sweep-00003-abc", "percent": 100}, {"revisionName": "ebb-sweep-00002-xyz", "tag": "v-b"}, {"revisionName": "ebb-sweep-00001-xyz", "tag": "v-a"}],
    },
}
# The filters of scripts and pages, with names that each is given. Only the first is meant.
FILTERS = [
    ("metadata.labels.installation~^ebb$", [{"metadata": {"labels": {"installation": name}}} for name in ("ebb", "ebb-test", "my-ebb", "ebbs")] + [{"metadata": {}}]),
    (
        # What has alternatives needs quotation marks: gcloud has a meaning of its own for parentheses.
        'email~"^ebb-(trigger|console|evaluate|sweep|invoker|execute-.+)@"',
        [{"email": f"{name}@some-project.iam.gserviceaccount.com"} for name in ("ebb-execute-light", "ebb-test-trigger", "ebb-test-execute-light", "my-ebb-trigger", "ebb-deployer")],
    ),
    ("status~^SUCCESSFUL$", [{"status": status} for status in ("SUCCESSFUL", "FAILED", "SKIPPED")]),
    ("name~^ebb-drill-1$", [{"name": name} for name in ("ebb-drill-1", "ebb-drill-1-2", "ebb-drill-12")]),
    (
        "pushConfig.oidcToken.serviceAccountEmail~^ebb-invoker@some-project[.]",
        [{"pushConfig": {"oidcToken": {"serviceAccountEmail": f"{name}.iam.gserviceaccount.com"}}} for name in ("ebb-invoker@some-project", "my-ebb-invoker@some-project", "ebb-invoker@some-project-2")] + [{}],
    ),
]
# Prints what gcloud makes of formats, and of filters. gcloud logs what it is going to change about a filter.
ASK = """
import io, json, logging, sys
from googlecloudsdk.core import log
from googlecloudsdk.core.resource import resource_filter, resource_printer
formats, filters = json.load(sys.stdin)
announced = []
log.warning = lambda text, *values: announced.append(text % values if values else text)
def shown(form, resource):
    out = io.StringIO()
    resource_printer.Print(resource, form, out=out)
    return out.getvalue().strip("\\n")
printed = [shown(form, resource) for form, resource in formats]
kept = [[bool(resource_filter.Compile(text).Evaluate(resource)) for resource in resources] for text, resources in filters]
print(json.dumps([printed, kept, announced]))
"""


def folder_of_sdk():
    """Where gcloud is, or nothing if it is not installed."""
    gcloud = shutil.which("gcloud")
    return gcloud and pathlib.Path(gcloud).resolve().parents[1]


def misunderstood():
    """How the stand-in differs from gcloud in what it keeps and prints; and filters that gcloud is going to read differently."""
    formats = [(form, RESOURCE) for form in FORMATS]
    library = folder_of_sdk() / "lib"
    # Its own modules, and beside them those of others.
    modules = os.pathsep.join(map(str, [library, *library.glob("third*")]))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": modules, "CLOUDSDK_CONFIG": folder}
        asked = subprocess.run([sys.executable, "-c", ASK], input=json.dumps([formats, FILTERS]), env=environment, stdout=subprocess.PIPE, text=True, check=True)
    texts, choices, announced = json.loads(asked.stdout)
    found = [f"gcloud says: {text}" for text in announced]
    found += [f"{form} prints {text!r}, and not {printed(resource, form)!r}" for (form, resource), text in zip(formats, texts) if text != printed(resource, form)]
    for (condition, resources), chosen in zip(FILTERS, choices):
        ours = [kept(resource, condition) for resource in resources]
        if not chosen == ours == [True] + [False] * (len(resources) - 1):
            found.append(f"{condition} keeps {chosen}, and in this test {ours}")
    return found


def not_printed():
    """What the stand-in prints in gcloud's name about the log of a build, and gcloud does not."""
    source = folder_of_sdk() / "lib/googlecloudsdk/command_lib/builds/submit_util.py"
    texts = [node.value for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if not any(NOT_DISPLAYED in text for text in texts):
        yield f"`gcloud builds submit` does not print: {NOT_DISPLAYED}"


def commands_of_sdk():
    """The tree of gcloud's commands, which its completion uses, or nothing if gcloud is not installed."""
    folder = folder_of_sdk()
    file = folder and folder / "data/cli/gcloud_completions.py"
    if not file or not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("gcloud_completions", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STATIC_COMPLETION_CLI_TREE


def problem(tree, words):
    """Why gcloud would not take these arguments, if it would not. Prose about gcloud is no command."""
    node, known = tree, dict(tree["flags"])
    if not words or words[0] not in tree["commands"]:
        return None
    for place, word in enumerate(words):
        if not node["commands"]:
            break
        if word.startswith("-") or word not in node["commands"]:
            # A group of commands may be mentioned as a whole.
            return None if word.startswith("-") else f"there is no `gcloud {' '.join(words[: place + 1])}`"
        node = node["commands"][word]
        known.update(node["flags"])
    flags = [re.match(r"--[a-z0-9-]*", word)[0] for word in words if word.startswith("--")]
    unknown = [flag for flag in flags if flag not in known and known.get(flag.replace("--no-", "--", 1)) != "bool"]
    return f"`gcloud {' '.join(words)}` has no {', '.join(unknown)}" if unknown else None


def mentioned(text):
    """The arguments of every gcloud command in a text."""
    text = text.replace("\\\n", " ")
    for match in re.finditer(r"\bgcloud ", text):
        line = text[match.end() :].split("\n", 1)[0]
        # Only its words count, not what is quoted or the output of other commands.
        line = re.sub(r"\$\([^)]*\)|'[^']*'|\"[^\"]*\"", "X", line)
        yield line[: END.search(line).start()].split()


def texts():
    for place in PLACES:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix in TEXTS and ".terraform" not in file.parts and "check" not in file.parts:
                yield str(file.relative_to(ROOT)), file.read_text()


def loose():
    """Filters that will soon find values that contain their text as a word, such as the name of another installation."""
    for name, text in texts():
        for match in re.finditer(r"--filter=[\"']?[A-Za-z.]+[=:][^ ]*", text):
            yield f"{name}: {match[0]} does not compare whole values: write NAME~^VALUE$"


def unknown():
    """Every command that gcloud does not have, or takes otherwise."""
    tree = commands_of_sdk()
    if tree is None:
        print("gcloud is not installed: its commands were not compared with those of scripts and documents.")
        return []
    known = [("tools/deploy-test/gcloud.py", [*command.split(), *sorted(flags)]) for command, flags in COMMANDS.items()]
    known += [(name, words) for name, text in texts() for words in mentioned(text)]
    return [f"{name}: {found}" for name, words in known if (found := problem(tree, words))] + [*loose(), *misunderstood(), *not_printed()]
