"""A worker executes, reports and keeps what it holds."""

from __future__ import annotations

import logging
import re
import threading
from typing import Any

import pytest

import ebbflow
from ebbflow import ApiError, Cancelled, PermanentError, Task, TransientError, Unauthorized, Worker
from ebbflow.worker import runner

from ..contract import TOKEN, ContractServer, Offer
from .conftest import Start


def test_a_function_gets_the_task_and_returns_its_output(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> Any:
        return {
            "sum": task.config["a"] + task.inputs["b"] + task.outputs["before"]["c"],
            "task": [task.run, task.name, task.attempt, task.workflow, task.type],
        }

    offer = Offer("add", config={"a": 1}, input={"inputs": {"b": 2}, "outputs": {"before": {"c": 3}}})
    server.offer(offer)
    start(work)
    step, body = server.end_of(offer.key)
    assert (step, body["output"]["sum"]) == ("complete", 6)
    assert body["output"]["task"] == [offer.run, "add", 1, "example", "work"]


def test_a_lease_says_what_the_worker_is(server: ContractServer, start: Start) -> None:
    running = start(lambda task: None, slots=3, labels={"gpu": True, "zone": "b"}, version="7")
    lease = server.eventually("a lease", lambda: server.workers.get(running.worker.name))
    assert (lease["queue"], lease["limit"], lease["slots"]) == ("tests", 3, 3)
    assert (lease["labels"], lease["types"], lease["version"]) == ({"gpu": True, "zone": "b"}, ["work"], "7")
    assert 0 < lease["wait_seconds"] <= 55 and lease["host"]
    assert set(lease["usage"]) >= {"disk"}


def test_only_tasks_of_its_types_and_labels_are_leased(server: ContractServer, start: Start) -> None:
    other, gpu, own = Offer("a", type="other"), Offer("b", requires={"gpu": True}), Offer("c")
    server.offer(other, gpu, own)
    start(lambda task: None)
    server.end_of(own.key)
    assert server.offers == [other, gpu]


def test_as_many_functions_run_at_once_as_there_are_slots(server: ContractServer, start: Start) -> None:
    together, running, most, lock = threading.Barrier(3), [0], [0], threading.Lock()

    def work(task: Task) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(60)  # Three at a time, or never.
        with lock:
            running[0] -= 1

    offers = [Offer(f"t{number}") for number in range(9)]
    server.offer(*offers)
    start(work, slots=3)
    assert {server.end_of(offer.key)[0] for offer in offers} == {"complete"}
    assert most == [3]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermanentError("no bands", {"bands": 0}), {"class": "permanent", "message": "no bands", "detail": {"bands": 0}}),
        (TransientError("busy"), {"class": "transient", "message": "busy"}),
        (ValueError("odd"), {"message": "ValueError: odd"}),
        (FileNotFoundError("x.tif"), {"class": "permanent", "message": "FileNotFoundError: x.tif"}),
        (ImportError("no gdal"), {"class": "permanent", "message": "ImportError: no gdal"}),
        (SystemExit(3), {"message": "SystemExit: 3"}),
        (PermanentError("odd detail", {1, 2}), {"class": "permanent", "message": "odd detail", "detail": "{1, 2}"}),
    ],
)
def test_an_exception_decides_how_the_attempt_fails(
    server: ContractServer, start: Start, error: BaseException, expected: dict[str, Any]
) -> None:
    def work(task: Task) -> None:
        raise error

    offer = Offer("fails")
    server.offer(offer)
    running = start(work)
    step, body = server.end_of(offer.key)
    assert (step, body) == ("fail", {"worker": running.worker.name, **expected})


def test_the_traceback_of_an_unexpected_exception_is_in_the_log(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        raise ValueError("odd")

    offer = Offer("fails")
    server.offer(offer)
    start(work)
    server.end_of(offer.key)
    assert server.log_of(offer.key)[0].startswith("Traceback")
    assert server.log_of(offer.key)[-1] == "ValueError: odd"


@pytest.mark.parametrize("result", [object(), float("nan"), {1, 2}])
def test_a_result_that_is_not_json_fails_for_good(server: ContractServer, start: Start, result: Any) -> None:
    offer = Offer("odd")
    server.offer(offer)
    start(lambda task: result)
    step, body = server.end_of(offer.key)
    assert (step, body["class"]) == ("fail", "permanent")
    assert "is not JSON" in body["message"]


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_an_output_that_the_server_rejects_fails_for_good(server: ContractServer, start: Start, status: str) -> None:
    offer = Offer("large")
    server.fail("complete", status)
    server.offer(offer)
    start(lambda task: "x")
    step, body = server.end_of(offer.key)
    assert (step, body["class"]) == ("fail", "permanent")
    assert "rejected the output" in body["message"]


def test_an_output_that_is_too_large_fails_for_good_and_is_not_sent(server: ContractServer, start: Start) -> None:
    offer = Offer("large")
    server.offer(offer)
    start(lambda task: "x" * 1024 * 1024)
    step, body = server.end_of(offer.key)
    assert (step, body["class"]) == ("fail", "permanent")
    assert re.match(r"the output is too large: the request has 10486\d\d bytes of JSON, .* at most 1048576", body["message"])
    assert server.count("complete") == 0


def test_a_checkpoint_that_is_too_large_is_a_mistake(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> Any:
        task.checkpoint("small", {"row": 1})
        with pytest.raises(ValueError, match="the checkpoint is too large"):
            task.checkpoint("large", {"rows": ["x" * 1024] * 1024})
        return task.checkpoint.phase

    offer = Offer("saves")
    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[1]["output"] == "small"


def test_a_failure_with_an_odd_message_and_a_detail_that_is_too_large_is_reported(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        raise PermanentError("no \ud800", "x" * 1024 * 1024)

    offer = Offer("fails")
    server.offer(offer)
    running = start(work)
    assert server.end_of(offer.key)[1] == {"worker": running.worker.name, "class": "permanent", "message": "no ?"}


def test_many_large_characters_fit_into_requests(server: ContractServer, start: Start) -> None:
    text = "\N{GRINNING FACE}" * 9_999

    def work(task: Task) -> None:
        task.progress(0.5, text * 20)
        for _ in range(40):
            task.log.info(text)

    offer = Offer("writes")
    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[0] == "complete"
    assert server.log_of(offer.key) == [text] * 40
    assert server.of(offer.key, "progress")[0]["progress"]["message"] == text[:200]


def test_an_attempt_has_at_most_32_metrics(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        for number in range(40):
            task.metric(f"m{number}", number)
        task.metric("m0", 100)

    offer = Offer("counts")
    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[0] == "complete"
    metrics = {name: value for report in server.of(offer.key, "progress") for name, value in report["metrics"].items()}
    assert metrics == {"m0": 100, **{f"m{number}": number for number in range(1, 32)}}
    assert server.log_of(offer.key) == ["the metric `m32` and further ones are dropped: an attempt has at most 32"]


def test_log_lines_arrive_in_order_with_their_levels(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        task.log.debug("one")
        task.log.info("two\nthree")
        logging.getLogger("some.library").error("four %s", "!")
        task.log.warning("")
        for number in range(1500):
            task.log.info("line %s", number)

    offer = Offer("writes")
    server.offer(offer)
    start(work)
    server.end_of(offer.key)
    log = server.lines[offer.key]
    assert [line["line"] for line in log] == ["one", "two", "three", "four !", "", *(f"line {n}" for n in range(1500))]
    assert [line["level"] for line in log[:5]] == ["debug", "info", "info", "error", "warning"]
    assert [line["stream"] for line in log[:4]] == ["stdout", "stdout", "stdout", "stderr"]


def test_records_of_other_threads_belong_to_no_attempt(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        thread = threading.Thread(target=lambda: logging.getLogger("elsewhere").error("not mine"))
        thread.start()
        thread.join()
        logging.getLogger("here").error("mine")

    offer = Offer("writes")
    server.offer(offer)
    start(work)
    server.end_of(offer.key)
    assert server.log_of(offer.key) == ["mine"]


def test_odd_characters_do_not_keep_a_log_from_arriving(server: ContractServer, start: Start) -> None:
    offer = Offer("odd")
    server.offer(offer)
    start(lambda task: task.log.info("a\0b \ud800 c"))
    assert server.end_of(offer.key)[0] == "complete"
    assert server.log_of(offer.key) == ["a\N{REPLACEMENT CHARACTER}b ? c"]


def test_the_latest_progress_and_metrics_arrive_before_the_result(server: ContractServer, start: Start) -> None:
    def work(task: Task) -> None:
        for done in range(1000):
            task.progress(done / 1000, f"row {done}")
            task.metric("rows", done)
        task.metric("bytes", 1.5)

    offer = Offer("counts")
    server.offer(offer)
    start(work)
    server.end_of(offer.key)
    reports = server.of(offer.key, "progress")
    progress = [report["progress"] for report in reports if "progress" in report]
    assert progress[-1] == {"fraction": 0.999, "message": "row 999"}
    metrics = {name: value for report in reports for name, value in report.get("metrics", {}).items()}
    assert metrics == {"rows": 999, "bytes": 1.5}
    assert len(reports) < 100, "only the latest is sent"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_progress_beyond_its_bounds_is_a_mistake(server: ContractServer, start: Start, fraction: float) -> None:
    offer = Offer("odd")
    server.offer(offer)
    start(lambda task: task.progress(fraction))
    assert server.end_of(offer.key)[1]["message"].startswith("ValueError: `fraction`")


def test_a_checkpoint_is_saved_at_once_and_the_next_attempt_begins_with_it(server: ContractServer, start: Start) -> None:
    seen: list[Any] = []

    def work(task: Task) -> None:
        seen.append((bool(task.checkpoint), task.checkpoint.phase, task.checkpoint.state))
        if not task.checkpoint:
            task.checkpoint("loaded", {"rows": 12})
            assert server.held[offer.key][1].checkpoint == {"phase": "loaded", "state": {"rows": 12}}
            seen.append((task.checkpoint.phase, task.checkpoint.state))

    offer = Offer("loads")
    again = Offer("loads", attempt=2, checkpoint={"phase": "loaded", "state": {"rows": 12}})
    server.offer(offer, again)
    start(work)
    assert server.end_of(again.key)[0] == "complete"
    assert seen == [(False, None, {}), ("loaded", {"rows": 12}), (True, "loaded", {"rows": 12})]


def test_a_checkpoint_of_another_form_can_be_read(server: ContractServer, start: Start) -> None:
    offer = Offer("odd", checkpoint=[1, 2])
    server.offer(offer)
    start(lambda task: [task.checkpoint.value, task.checkpoint.phase])
    assert server.end_of(offer.key)[1]["output"] == [[1, 2], None]


def test_an_attempt_that_is_taken_away_stops_and_reports_nothing(server: ContractServer, start: Start) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def work(task: Task) -> str:
        begun.set()
        while not task.cancelled:
            task._cancelled.wait(60)
        stopped.set()
        return "too late"

    offer, next_offer = Offer("long"), Offer("next")
    server.offer(offer)
    start(work)
    assert begun.wait(60)
    server.take_away(offer.key)
    assert stopped.wait(60)
    server.offer(next_offer)
    server.eventually("the next attempt is held", lambda: next_offer.key in server.held)
    assert [report.step for report in server.reports if report.key == offer.key] == []


def test_a_checkpoint_of_an_attempt_that_was_taken_away_stops_the_function(server: ContractServer, start: Start) -> None:
    server.heartbeat_seconds = 600
    begun, taken, stopped = threading.Event(), threading.Event(), threading.Event()

    def work(task: Task) -> None:
        begun.set()
        taken.wait(60)
        try:
            task.checkpoint("half")
        except Cancelled:
            stopped.set()
            raise

    offer = Offer("long")
    server.offer(offer)
    start(work)
    assert begun.wait(60)
    server.take_away(offer.key)
    taken.set()
    assert stopped.wait(60)


def test_an_attempt_beyond_its_timeout_fails_as_such(server: ContractServer, start: Start) -> None:
    offer = Offer("slow", timeout_seconds=1)
    server.offer(offer)
    start(lambda task: task.sleep(600))
    step, body = server.end_of(offer.key)
    assert (step, body["class"], body["message"]) == ("fail", "timeout", "exceeded its timeout of 1 s")


def test_a_function_that_ignores_its_timeout_is_given_up(
    server: ContractServer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_CHECKPOINT_SECONDS", 0.1)
    end = threading.Event()
    offer, other = Offer("stuck", timeout_seconds=1), Offer("other")
    server.offer(offer)
    start(lambda task: end.wait(60) and None)
    assert server.end_of(offer.key)[1]["class"] == "timeout"
    server.offer(other)
    assert server.count("complete") == 0, "its slot is taken until it returns"
    end.set()
    assert server.end_of(other.key)[0] == "complete"
    assert server.ended[offer.key][1] == "fail", "the late result is dropped"


def test_secrets_are_masked_in_everything_that_is_reported(
    server: ContractServer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBB_SECRET_OWN", "my own/secret")

    def work(task: Task) -> Any:
        own = task.secret("OWN")
        task.log.info("%s and %s and %s", task.config["key"], own, "my%20own%2Fsecret")
        task.progress(0.5, f"with {own}")
        task.checkpoint("c", {"key": own})
        return {"key": [own, "s3cr3t-value"], own: 1}

    offer = Offer("hides", config={"key": "s3cr3t-value"}, secrets=["s3cr3t-value"])
    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[1]["output"] == {"key": ["***", "***"], "***": 1}
    assert server.log_of(offer.key) == ["*** and *** and ***"]
    assert server.of(offer.key, "progress")[-1]["progress"]["message"] == "with ***"
    assert server.of(offer.key, "checkpoint")[0]["checkpoint"]["state"] == {"key": "***"}


def test_a_missing_secret_fails_for_good(server: ContractServer, start: Start) -> None:
    offer = Offer("lacks")
    server.offer(offer)
    start(lambda task: task.secret("NOPE"))
    body = server.end_of(offer.key)[1]
    assert body["class"] == "permanent" and "EBB_SECRET_NOPE" in body["message"]


def test_a_rejected_token_ends_the_worker(server: ContractServer) -> None:
    worker = Worker(server.url, "wrong", queue="tests")
    worker.task("work")(lambda task: None)
    with pytest.raises(Unauthorized, match="not accepted"):
        worker.run()


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "422"])
def test_a_lease_that_is_refused_ends_the_worker(server: ContractServer, start: Start, status: str) -> None:
    server.fail("lease", status)
    running = start(lambda task: None)
    running.join()
    assert isinstance(running.error, ApiError) and running.error.status == int(status)


def test_mistakes_are_found_before_the_worker_runs(server: ContractServer) -> None:
    worker = Worker(server.url, TOKEN, queue="tests")
    with pytest.raises(RuntimeError, match="no functions"):
        worker.run()
    worker.task("a.b")(lambda task: None)
    with pytest.raises(ValueError, match="two functions"):
        worker.task("a.b")(lambda task: None)
    with pytest.raises(ValueError, match="not the name"):
        worker.task("a b")

    async def coroutine(task: Task) -> None: ...

    with pytest.raises(TypeError, match="async"):
        worker.task("c")(coroutine)
    with pytest.raises(ValueError, match="at least one"):
        Worker(server.url, TOKEN, queue="tests", slots=0)
    with pytest.raises(ValueError, match="EBB_TOKEN"):
        Worker(server.url, queue="tests")
    assert ebbflow.Worker is Worker
