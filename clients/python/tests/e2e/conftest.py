"""A real `ebb dev`, in a folder of its own. The variable EBB_BINARY names the program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbflow import Client

from ..eventually import LIMIT_SECONDS

SOURCE = Path(__file__).parents[2] / "src"
EXAMPLES = Path(__file__).parents[2] / "examples"
TYPES = Path(__file__).parents[4] / "workflows" / "types"

WORKFLOWS = {
    "hello": """
        name: hello
        inputs: {who: {type: string, default: world}, rows: {type: integer, default: 1}}
        tasks:
          - {name: greet, type: bash, config: {env: {WHO: '{{ inputs.who }}'}, command: 'echo hello $WHO'}}
          - {name: value, type: echo, depends_on: [greet], config: {value: {who: '{{ inputs.who }}'}}}
          - {name: each, type: fan_out, depends_on: [value], for_each: range(inputs.rows), task: {type: noop}}
    """,
    "fails": "{name: fails, tasks: [{name: bad, type: fail, config: {message: it broke}, retry_policy: {max_retries: 0}}]}",
    "nap": "{name: nap, tasks: [{name: nap, type: sleep, config: {duration: 1h}}]}",
    "payment": "{name: payment, tasks: [{name: paid, type: wait_for_signal, config: {signal: paid}}]}",
    "ask": """
        name: ask
        tasks:
          - name: decide
            type: approval
            config: {message: How much?, fields: {amount: {type: number, required: true}}}
    """,
    "remote": """
        name: remote
        inputs: {what: {type: string}}
        tasks:
          - name: work
            type: echo
            queue: py
            retry_policy: {max_retries: 1, initial_delay_seconds: 1}
            config: {value: '{{ inputs.what }}'}
          - {name: after, type: echo, depends_on: [work], config: {value: '{{ outputs.work }}'}}
    """,
    "program": f"""
        name: program
        inputs: {{rows: {{type: integer, default: 1000}}}}
        tasks:
          - name: count
            type: python
            retry_policy: {{max_retries: 0}}
            config:
              env: {{PYTHONPATH: '{SOURCE}', PYTHONDONTWRITEBYTECODE: '1'}}
              code: {json.dumps((EXAMPLES / "program.py").read_text())}
    """,
    "rasters": """
        name: rasters
        inputs: {bands: {type: integer}}
        tasks:
          - name: validate
            type: raster.validate
            config: {source: /srv/rasters/dem.tif, bands: '{{ inputs.bands }}'}
    """,
}


class Dev:
    """An `ebb dev` that can be killed and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Bound and not listening, so that no other process is given the port.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        graphs = folder / "workflows" / "graphs"
        graphs.mkdir(parents=True)
        for name, text in WORKFLOWS.items():
            (graphs / f"{name}.yaml").write_text(text)
        types = folder / "workflows" / "types"
        types.mkdir()
        shutil.copy(TYPES / "raster.validate.yaml", types)
        queues = folder / "workflows" / "queues"
        queues.mkdir()
        for queue in ("geo", "py"):
            (queues / f"{queue}.yaml").write_text(f"name: {queue}\nkind: pool\n")
        self.ebb("validate", "workflows")
        self.start()

    def command(self, *arguments: str) -> dict[str, Any]:
        """The arguments of a process that runs `ebb` in this folder, without the settings of the machine."""
        foreign = ("EBB_URL", "EBB_TOKEN", "EBB_TENANT", "EBB_DATA", "DATABASE_URL")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        # Programs of tasks see a read-only system, and this package.
        environment.update(XDG_CONFIG_HOME=str(self.folder / "config"), EBB_TASK_READABLE=readable())
        return {"args": [binary(), *arguments], "cwd": self.folder, "env": environment, "stdin": subprocess.DEVNULL}

    def start(self) -> None:
        self.log = (self.folder / "dev.log").open("a")
        command = self.command("dev", "--port", str(self.port))
        self.process = subprocess.Popen(**command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Ebbflow is up at "):
                break
        else:
            raise AssertionError(f"`ebb dev` ended before it was up: {(self.folder / 'dev.log').read_text()[-2000:]}")
        published = json.loads((self.folder / ".ebb" / "dev.json").read_text())
        self.url, self.token = published["url"], published["token"]

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(LIMIT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()

    def ebb(self, *arguments: str) -> str:
        """Run a command of `ebb` that must succeed; return what it prints."""
        ended: subprocess.CompletedProcess[str] = subprocess.run(
            **self.command(*arguments), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


def binary() -> str:
    path = os.environ.get("EBB_BINARY")
    if not path:
        pytest.fail("the variable EBB_BINARY must name the program `ebb`: EBB_BINARY=target/debug/ebb pytest tests/e2e")
    return str(Path(path).resolve())


def readable() -> str:
    """What programs of tasks may read besides the system: this package, and a Python that is not the system's."""
    return ":".join({str(SOURCE), sys.base_prefix})


@pytest.fixture(scope="session")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    dev = Dev(tmp_path_factory.mktemp("project"))
    yield dev
    dev.end()
    dev.reserved.close()


@pytest.fixture
def client(dev: Dev) -> Iterator[Client]:
    with Client(dev.url, dev.token) as client:
        yield client


@pytest.fixture(scope="session")
def worker_token(dev: Dev) -> str:
    return str(json.loads(dev.ebb("tokens", "create", "py", "--role", "worker", "--json"))["token"])
