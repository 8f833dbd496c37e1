"""A worker outlasts a server that is away, and loses nothing when responses do."""

from __future__ import annotations

import io
import logging
import threading
from typing import Any

import pytest

from ebbflow import Task, Unauthorized
from ebbflow.worker import runner

from ..contract import ContractServer, Offer
from .conftest import Start


@pytest.mark.parametrize("fault", ["500", "503", "401", "403", "302", "page", "json", "drop", "lose"])
@pytest.mark.parametrize("step", ["complete", "log", "checkpoint", "progress"])
def test_reports_are_repeated_until_they_are_accepted(server: ContractServer, start: Start, step: str, fault: str) -> None:
    def work(task: Task) -> str:
        task.log.info("a line")
        task.progress(0.5)
        task.checkpoint("half")
        return "done"

    offer = Offer("report")
    server.fail(step, fault, fault)
    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[1]["output"] == "done"
    assert server.log_of(offer.key) == ["a line"]
    assert len(server.of(offer.key, "complete")) == 1


@pytest.mark.parametrize("fault", ["500", "503", "409", "429", "page", "json", "drop"])
def test_leasing_goes_on_once_the_server_is_back(server: ContractServer, start: Start, fault: str) -> None:
    offer = Offer("late")
    server.fail("lease", fault)
    server.offer(offer)
    start(lambda task: "done")
    assert server.end_of(offer.key)[0] == "complete"


def test_a_worker_that_cannot_wait_comes_back_after_the_time_it_is_given(server: ContractServer, start: Start) -> None:
    offer = Offer("late")
    server.retry_after_seconds = 0.5
    server.offer(offer)
    start(lambda task: "done")
    assert server.end_of(offer.key)[0] == "complete"
    first, second = server.lease_times[:2]
    assert second - first >= 0.5


def test_a_worker_that_comes_back_later_stops_at_once(server: ContractServer, start: Start) -> None:
    server.retry_after_seconds = 3600
    worker = start(lambda task: "done")
    server.eventually("the first lease", lambda: server.lease_times)
    worker.stop()


def test_attempts_whose_lease_was_lost_are_released(server: ContractServer, start: Start) -> None:
    offer = Offer("lost")
    server.fail("lease", "lose")
    server.offer(offer)
    start(lambda task: task.attempt)
    step, body = server.end_of(offer.key)
    assert (step, body["reason"], body["begun"]) == ("release", "the response to its lease was lost", False)
    assert server.end_of((offer.run, "lost", 2))[1]["output"] == 2


@pytest.mark.parametrize("status", ["404", "409"])
def test_a_result_of_an_attempt_that_is_gone_is_dropped(server: ContractServer, start: Start, status: str) -> None:
    """Here it is not really gone, so the worker hands it back: it had begun."""
    offer, other = Offer("gone"), Offer("other")
    go = threading.Event()
    server.fail("complete", status, task="gone")
    server.offer(offer, other)
    start(lambda task: task.name == "gone" or go.wait(60), slots=2)
    step, body = server.end_of(offer.key)
    assert (step, body["reason"]) == ("release", "its end could not be reported")
    assert "begun" not in body
    go.set()
    assert server.count("fail") == 0


def test_reports_end_once_the_attempt_was_taken_away(server: ContractServer, start: Start) -> None:
    offer, other = Offer("lost"), Offer("other")
    server.fail("complete", *["500"] * 1000, task="lost")
    server.offer(offer)
    start(lambda task: None)
    server.eventually("its result is not accepted", lambda: server.faults_left() < 999)
    server.take_away(offer.key)
    server.offer(other)
    assert server.end_of(other.key)[0] == "complete", "its slot is free again"
    assert server.faults_left() > 900


def test_a_worker_whose_token_was_revoked_ends(server: ContractServer, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LAST_REPORTS_SECONDS", 0.5)
    server.fail("complete", *["401"] * 1000)
    server.offer(Offer("done"))
    running = start(lambda task: None, slots=3)
    server.eventually("it waits for more", lambda: server.waiting_leases and server.faults_left() < 1000)
    server.fail("lease", *["401"] * 1000)
    server.offer(Offer("more"))
    running.join()
    assert isinstance(running.error, Unauthorized)


def test_reports_that_are_repeated_hold_up_no_other_attempt(server: ContractServer, start: Start) -> None:
    stuck, slow, chatty = Offer("stuck"), Offer("slow", timeout_seconds=1), Offer("chatty")
    go = threading.Event()

    def work(task: Task) -> None:
        task.log.info("a line of %s", task.name)
        if task.name == "slow":
            task.sleep(600)
        elif task.name == "chatty":
            go.wait(60)

    server.fail("log", *["503"] * 1000, task="stuck")
    server.offer(stuck, slow, chatty)
    start(work, slots=3)
    server.eventually("a line of another attempt", lambda: server.lines.get(chatty.key))
    assert server.end_of(slow.key)[1]["class"] == "timeout"
    assert stuck.key in server.held
    server.recover()
    go.set()
    assert server.end_of(stuck.key)[0] == "complete"


def test_an_attempt_whose_lease_is_on_its_way_is_not_released(server: ContractServer, start: Start) -> None:
    """The heartbeat for the first attempt lists the second one before the worker knows it."""
    go = threading.Event()
    first, second = Offer("first"), Offer("second")

    def work(task: Task) -> None:
        go.wait(60)

    server.offer(first)
    start(work, slots=2)
    server.eventually("the second lease waits", lambda: first.key in server.held and server.waiting_leases)
    gate = server.hold_back("lease")
    server.offer(second)
    server.eventually("the second is leased", lambda: second.key in server.held)
    beats = server.count("heartbeat")
    server.eventually("some heartbeats", lambda: server.count("heartbeat") >= beats + 4)
    gate.set()
    go.set()
    assert server.end_of(second.key)[0] == "complete"
    assert server.of(second.key, "release") == []


def test_attempts_go_on_while_heartbeats_fail(server: ContractServer, start: Start) -> None:
    go = threading.Event()
    offer = Offer("long")
    server.fail("heartbeat", "503", "drop", "lose")
    server.offer(offer)
    start(lambda task: go.wait(60))
    server.eventually("a heartbeat gets through", lambda: server.count("heartbeat") >= 2)
    go.set()
    assert server.end_of(offer.key)[1]["output"] is True


def test_a_busy_worker_sends_heartbeats_and_an_idle_one_does_not(server: ContractServer, start: Start) -> None:
    go = threading.Event()
    offer = Offer("long")
    running = start(lambda task: go.wait(60))
    server.eventually("it waits for work", lambda: server.waiting_leases)
    assert server.count("heartbeat") == 0
    server.offer(offer)
    server.eventually("heartbeats", lambda: server.count("heartbeat") >= 3)
    go.set()
    server.end_of(offer.key)
    running.stop(0)
    assert server.workers == {}


def test_a_report_that_is_never_accepted_does_not_hold_up_the_result(server: ContractServer, start: Start) -> None:
    offer = Offer("odd")
    server.fail("log", "422")

    def work(task: Task) -> Any:
        task.log.info("a line")

    server.offer(offer)
    start(work)
    assert server.end_of(offer.key)[0] == "complete"


def test_warnings_are_printed_where_logging_is_not_configured(
    server: ContractServer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    printed = io.StringIO()
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler(printed))
    offer = Offer("late")
    server.fail("lease", "503")
    server.offer(offer)
    start(lambda task: "done")
    server.end_of(offer.key)
    assert "Cannot lease from queue `tests`" in printed.getvalue()
