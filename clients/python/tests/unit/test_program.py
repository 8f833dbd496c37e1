"""`ebbflow.task`: a program and its worker talk through files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbflow import PermanentError, ProgramTask, task

from ..eventually import LIMIT_SECONDS

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("INPUT", "OUTPUT", "MESSAGES", "FAILURE"):
        monkeypatch.setenv(f"EBB_{name}", str(tmp_path / name))
    document = {
        "inputs": {"day": "2026-01-31"},
        "outputs": {"load": {"rows": 3}},
        "checkpoint": {"phase": "a", "state": {"n": 1}},
    }
    (tmp_path / "INPUT").write_text(json.dumps(document))
    return tmp_path


def messages(files: Path) -> list[Any]:
    return [json.loads(line) for line in (files / "MESSAGES").read_text().splitlines()]


def test_a_program_reads_its_input(files: Path) -> None:
    task = ProgramTask()
    assert task.input["inputs"] == task.inputs == {"day": "2026-01-31"}
    assert task.outputs["load"] == {"rows": 3}
    assert (task.checkpoint.phase, task.checkpoint.state) == ("a", {"n": 1})


def test_the_program_of_a_custom_type_reads_its_type_and_settings(files: Path) -> None:
    assert (ProgramTask().type, ProgramTask().config) == (None, {})
    (files / "INPUT").write_text(json.dumps({"type": "raster.validate", "config": {"bands": 3}}))
    assert (ProgramTask().type, ProgramTask().config) == ("raster.validate", {"bands": 3})


def test_what_a_program_reports_are_lines_of_json(files: Path) -> None:
    task = ProgramTask()
    task.progress(0.4, "half")
    task.progress(1)
    task.metric("rows", 12)
    task.checkpoint("loaded", {"rows": 12})
    task.log.warning("odd: %s", "ü")
    task.output({"rows": 12})
    assert messages(files) == [
        {"progress": 0.4, "message": "half"},
        {"progress": 1.0},
        {"metric": {"rows": 12}},
        {"checkpoint": {"phase": "loaded", "state": {"rows": 12}}},
        {"log": {"level": "warning", "message": "odd: ü"}},
    ]
    assert json.loads((files / "OUTPUT").read_text()) == {"rows": 12}
    assert task.checkpoint.state == {"rows": 12}


def test_values_that_cannot_be_reported_are_mistakes(files: Path) -> None:
    task = ProgramTask()
    for value in (float("nan"), float("inf"), True):
        with pytest.raises(ValueError, match="rows"):
            task.metric("rows", value)
    for name in ("", "x" * 65, "a\nb"):
        with pytest.raises(ValueError, match="cannot name a metric"):
            task.metric(name, 1)
    with pytest.raises(ValueError, match="fraction"):
        task.progress(40)
    with pytest.raises(ValueError, match="JSON"):
        task.output(float("nan"))


def test_outside_of_a_task_reports_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    task = ProgramTask()
    assert task.input == {} and not task.checkpoint
    task.output([1])
    task.progress(0.5)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("[1]\n", '{"progress": 0.5}\n')


def test_secrets_are_found_where_the_task_passes_them_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "from env")
    monkeypatch.setenv("EBB_SECRETS_DIR", str(tmp_path))
    (tmp_path / "FILE").write_text("from file\n")
    (tmp_path / "LINK").symlink_to("/etc/hostname")
    assert task.secret("API_KEY") == "from env"
    assert task.secret("FILE") == "from file"
    for name in ("LINK", "MISSING"):
        with pytest.raises(PermanentError, match=name):
            task.secret(name)
    with pytest.raises(PermanentError, match="not the name"):
        task.secret("../FILE")


def execute(files: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def test_an_uncaught_exception_sets_the_class_of_the_failure(files: Path) -> None:
    ended = execute(files, "import ebbflow; raise ebbflow.PermanentError('no bands', {'bands': 0})")
    assert ended.returncode == 1
    assert "PermanentError: no bands" in ended.stderr
    failure = json.loads((files / "FAILURE").read_text())
    assert failure == {"class": "permanent", "message": "no bands", "detail": {"bands": 0}}


def test_other_exceptions_leave_the_class_to_the_server(files: Path) -> None:
    assert execute(files, "import ebbflow; raise ValueError('odd')").returncode == 1
    assert not (files / "FAILURE").exists()


def test_messages_may_be_a_pipe_and_longer_than_its_buffer(files: Path) -> None:
    os.mkfifo(files / "MESSAGES")
    code = "from ebbflow import task\ntask.checkpoint('large', {'rows': 'x' * 300_000})\ntask.progress(1)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
        # The worker's own writer keeps the pipe open.
        with os.fdopen(os.open(files / "MESSAGES", os.O_RDWR), "r") as pipe:
            large, progress = (json.loads(pipe.readline()) for _ in range(2))
        assert process.wait(LIMIT_SECONDS) == 0
    assert len(large["checkpoint"]["state"]["rows"]) == 300_000
    assert progress == {"progress": 1.0}


def test_lines_of_several_processes_do_not_mix(files: Path) -> None:
    code = "from ebbflow import task\nfor n in range(300): task.metric('x' * 60, n)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    processes = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [process.wait(LIMIT_SECONDS) for process in processes] == [0, 0, 0]
    assert len(messages(files)) == 900
