"""The client and a real server agree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from datetime import datetime, timezone
from itertools import islice

import pytest

import ebbflow
from ebbflow import Client

from ..eventually import LIMIT_SECONDS, eventually
from .conftest import EXAMPLES, SOURCE, Dev


def test_a_run_is_started_awaited_and_read(client: Client) -> None:
    run = client.wait(client.trigger("hello", {"who": "Ada", "rows": 3}, labels={"team": "blue"}))
    assert run.raise_for_state().succeeded
    assert (run.workflow, run.inputs, run.labels) == ("hello", {"who": "Ada", "rows": 3}, {"team": "blue"})
    assert run.finished_at is not None and run.started_at is not None and run.finished_at >= run.started_at
    assert client.output(run, "value") == client.outputs(run)["value"] == {"value": {"who": "Ada"}}
    assert [line.line for line in client.logs(run, "greet") if line.stream == "stdout"] == ["hello Ada"]
    assert [line.line for line in client.follow_logs(run, "greet") if line.stream == "stdout"] == ["hello Ada"]
    assert [task.name for task in client.tasks(run)] == ["greet", "value", "each"]
    assert [task.parent for task in client.tasks(run, parent="each")] == ["each"] * 3
    (attempt,) = client.attempts(run, "greet")
    assert (attempt.number, attempt.state, attempt.error) == (1, "succeeded", None)
    assert client.task(run, "greet").type == "bash"
    assert client.explain(run)


def test_an_idempotency_key_starts_one_run(client: Client) -> None:
    key = str(uuid.uuid4())
    first, again = (client.trigger("hello", {"who": "once"}, idempotency_key=key) for _ in range(2))
    assert first.id == again.id
    with pytest.raises(ebbflow.Unprocessable) as caught:
        client.trigger("hello", {"who": "another"}, idempotency_key=key)
    assert caught.value.code == "idempotency_key_reused"
    client.wait(first)


def test_a_logical_date_has_one_run(client: Client) -> None:
    date = datetime(2026, 1, 31, tzinfo=timezone.utc)
    run = client.trigger("nap", logical_date=date)
    assert run.logical_date == date
    with pytest.raises(ebbflow.Conflict) as caught:
        client.trigger("nap", logical_date=date)
    assert caught.value.code == "logical_date_taken"
    other = client.trigger("nap", logical_date=date, replace_existing=True)
    assert client.wait(run).state == "cancelled"
    assert client.cancel(other, "not needed").state == "cancelled"


def test_lists_are_filtered_and_read_page_by_page(client: Client) -> None:
    label = str(uuid.uuid4())
    ids = [client.trigger("hello", labels={"batch": label}).id for _ in range(5)]
    found = [run.id for run in client.runs(workflow="hello", label=f"batch={label}", sort="created_at", page_size=2)]
    assert found == ids
    assert len(list(islice(client.runs(page_size=1), 3))) == 3
    for run in ids:
        client.wait(run)


def test_a_failed_run_says_why_and_can_be_retried(client: Client) -> None:
    run = client.wait(client.trigger("fails"))
    with pytest.raises(ebbflow.RunFailed, match="it broke"):
        run.raise_for_state()
    task = client.task(run, "bad")
    assert task.error is not None and task.error.message == "it broke"
    client.retry(run, "once more")
    assert client.wait(run).state == "failed"
    assert [attempt.number for attempt in client.attempts(run, "bad")] == [1, 2]


def test_waiting_has_a_timeout(client: Client) -> None:
    run = client.trigger("nap")
    with pytest.raises(ebbflow.WaitTimeout):
        client.wait(run, timeout=0.5)
    assert client.pause(run).state == "paused"
    client.resume(run)
    assert client.cancel(run).state == "cancelled"


def test_a_signal_ends_a_wait(client: Client) -> None:
    run = client.trigger("payment")
    client.signal(run, "paid", {"amount": 3})
    assert client.wait(run).succeeded
    assert client.output(run, "paid") == {"amount": 3}


def test_an_approval_is_found_and_answered(client: Client) -> None:
    run = client.trigger("ask")
    (waiting,) = eventually("it waits for approval", lambda: client.approvals(run))
    assert waiting.name == "decide"
    with pytest.raises(ebbflow.Unprocessable) as caught:
        client.approve(run, "decide", {})
    assert caught.value.code == "invalid_answer"
    client.approve(run, "decide", {"amount": 7})
    assert client.wait(run).succeeded
    assert "7" in str(client.outputs(run)["decide"])
    rejected = client.trigger("ask")
    eventually("it waits for approval", lambda: client.approvals(rejected))
    client.reject(rejected, "decide", "too much")
    assert client.wait(rejected).state == "failed"


def test_events_are_followed(client: Client) -> None:
    run = client.trigger("payment")
    begun, seen = threading.Event(), []

    def follow() -> None:
        for event in client.events(run=run):
            seen.append(event)
            begun.set()
            if event.state == "succeeded":
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    # Signals for which no task waits are events, too: the stream has begun once one arrives.
    eventually("the stream has begun", lambda: client.signal(run, "other") and begun.wait(0.1))
    client.signal(run, "paid", 1)
    thread.join(LIMIT_SECONDS)
    assert seen[-1].state == "succeeded"
    assert [event.seq for event in seen] == sorted({event.seq for event in seen})


def test_unknown_names_are_not_found(client: Client) -> None:
    with pytest.raises(ebbflow.NotFound, match="did you mean `hello`"):
        client.trigger("helo")
    with pytest.raises(ebbflow.NotFound):
        client.run(str(uuid.uuid4()))
    with pytest.raises(ebbflow.Unprocessable, match="rows"):
        client.trigger("hello", {"rows": "many"})


def test_a_wrong_token_is_unauthorized(client: Client) -> None:
    with Client(client._transport.url, "wrong") as stranger, pytest.raises(ebbflow.Unauthorized):
        stranger.run(str(uuid.uuid4()))


def test_the_program_of_the_readme_works(client: Client) -> None:
    run = client.wait(client.trigger("program", {"rows": 250}))
    assert run.raise_for_state().succeeded
    assert client.output(run, "count") == {"rows": 250}
    failed = client.wait(client.trigger("program", {"rows": -1}))
    assert failed.state == "failed" and "there cannot be -1 rows" in str(list(client.logs(failed, "count")))


def test_the_example_of_the_client_works(dev: Dev) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "EBB_URL": dev.url, "EBB_TOKEN": dev.token}
    arguments = [sys.executable, str(EXAMPLES / "trigger.py")]
    hello, fails = (
        subprocess.run([*arguments, *given], env=environment, capture_output=True, text=True, check=False)
        for given in (["hello", '{"who": "Ada"}'], ["fails"])
    )
    assert hello.returncode == 0 and '"who": "Ada"' in hello.stdout
    assert fails.returncode == 1 and "it broke" in fails.stderr


def test_package_and_server_have_the_same_version(dev: Dev) -> None:
    assert ebbflow.__version__ in dev.ebb("--version")
