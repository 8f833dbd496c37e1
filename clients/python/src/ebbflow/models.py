"""What the API returns, as values.

Fields that a program is likely to use have names and types. Everything else that the server sent is in `raw`, so that a newer
server needs no newer package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeVar

from .errors import RunFailed

__all__ = ["Attempt", "Event", "Failure", "LogLine", "Run", "TaskInfo"]

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})

_FRACTION = re.compile(r"\.(\d{1,6})\d*")


def parse_time(text: str) -> datetime:
    """Parse a timestamp of the API. Python before 3.11 accepts neither `Z` nor a fraction of any length."""
    text = _FRACTION.sub(lambda found: "." + found[1].ljust(6, "0"), text)
    if text.endswith(("Z", "z")):
        text = text[:-1] + "+00:00"
    return datetime.fromisoformat(text)


def format_time(at: datetime) -> str:
    """Format a timestamp for the API. A time without a zone would mean something else on another machine."""
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone; use datetime(…, tzinfo=timezone.utc)")
    return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _time(data: Mapping[str, Any], name: str) -> datetime | None:
    text = data.get(name)
    return parse_time(text) if text else None


@dataclass(frozen=True)
class Run:
    """A run of a workflow, as it was when it was read."""

    id: str
    workflow: str
    version: int
    state: str
    inputs: dict[str, Any]
    labels: dict[str, Any]
    counts: dict[str, int]
    logical_date: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Read a run from a response."""
        return cls(
            id=data["id"],
            workflow=data["workflow"],
            version=data["version"],
            state=data["state"],
            inputs=data["inputs"],
            labels=data["labels"],
            counts=data["counts"],
            logical_date=_time(data, "logical_date"),
            created_at=parse_time(data["created_at"]),
            started_at=_time(data, "started_at"),
            finished_at=_time(data, "finished_at"),
            error=data.get("error"),
            raw=data,
        )

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended. A person can still have tasks of it run again."""
        return self.state in FINAL_STATES

    @property
    def succeeded(self) -> bool:
        """Whether the run ended well."""
        return self.state == "succeeded"

    def raise_for_state(self) -> Run:
        """Return the run if it succeeded or has not ended, and raise `RunFailed` otherwise."""
        if self.has_ended and not self.succeeded:
            raise RunFailed(self)
        return self


@dataclass(frozen=True)
class Failure:
    """Why a task or an attempt failed. `failure_class` decides on retries: `transient`, `permanent`, `timeout` …"""

    failure_class: str
    message: str
    exit_code: int | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Failure | None:
        """Read an error from a response that may have none."""
        if data is None:
            return None
        return cls(data["class"], data["message"], data.get("exit_code"), data)


@dataclass(frozen=True)
class TaskInfo:
    """A task of a run, as it was when it was read."""

    name: str
    type: str
    state: str
    attempt: int
    max_attempts: int
    queue: str
    parent: str | None
    started_at: datetime | None
    finished_at: datetime | None
    output: Any
    error: Failure | None
    waiting_for: str | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskInfo:
        """Read a task from a response."""
        return cls(
            name=data["name"],
            type=data["type"],
            state=data["state"],
            attempt=data["attempt"],
            max_attempts=data["max_attempts"],
            queue=data["queue"],
            parent=data.get("parent"),
            started_at=_time(data, "started_at"),
            finished_at=_time(data, "finished_at"),
            output=data.get("output"),
            error=Failure.from_json(data.get("error")),
            waiting_for=(data.get("waiting") or {}).get("reason"),
            raw=data,
        )

    @property
    def has_whole_output(self) -> bool:
        """Whether `output` is complete: lists leave out those of more than 4 KiB."""
        return self.raw.get("output_preview") is None


@dataclass(frozen=True)
class Attempt:
    """One try at a task, with the decision that followed it."""

    number: int
    state: str
    worker: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: Failure | None
    decision: str | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Read an attempt from a response."""
        return cls(
            number=data["attempt"],
            state=data["state"],
            worker=data.get("worker"),
            started_at=_time(data, "started_at"),
            finished_at=_time(data, "finished_at"),
            error=Failure.from_json(data.get("error")),
            decision=data.get("decision"),
            raw=data,
        )


@dataclass(frozen=True)
class LogLine:
    """One line that an attempt wrote."""

    at: datetime
    stream: str
    level: str
    line: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogLine:
        """Read a line from a response."""
        return cls(parse_time(data["at"]), data["stream"], data["level"], data["line"])


@dataclass(frozen=True)
class Event:
    """Something that happened to a run; `state` is the run's state when the event was sent."""

    run: str
    workflow: str
    state: str
    seq: int
    at: datetime
    type: str
    task: str | None
    attempt: int | None
    actor: str | None
    data: Any

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Event:
        """Read an event from a stream."""
        return cls(
            run=data["run"],
            workflow=data["workflow"],
            state=data["state"],
            seq=data["seq"],
            at=parse_time(data["at"]),
            type=data["type"],
            task=data.get("task"),
            attempt=data.get("attempt"),
            actor=data.get("actor"),
            data=data.get("data"),
        )


Model = TypeVar("Model", Run, TaskInfo, Attempt, LogLine)
