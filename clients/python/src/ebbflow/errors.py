"""What can go wrong, as exceptions that programs can tell apart.

Errors of the API are `ApiError`, one subclass for each status, with the API's own `code` and `message`. A task function
raises `PermanentError` or `TransientError` to decide whether a retry makes sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Run

__all__ = [
    "ApiError",
    "AttemptLost",
    "BadRequest",
    "Cancelled",
    "Conflict",
    "ConnectionFailed",
    "EbbflowError",
    "Forbidden",
    "NotFound",
    "PermanentError",
    "RunFailed",
    "TaskError",
    "TooManyRequests",
    "TransientError",
    "Unauthorized",
    "Unavailable",
    "Unprocessable",
    "WaitTimeout",
]


class EbbflowError(Exception):
    """The base of every exception of this package."""


class ConnectionFailed(EbbflowError):
    """The server could not be reached, or its response was not complete."""


class WaitTimeout(EbbflowError, TimeoutError):
    """A run had not ended when the time to wait for it was over."""

    def __init__(self, run: Run, seconds: float) -> None:
        super().__init__(f"run {run.id} of `{run.workflow}` is still {run.state} after {seconds:g} s")
        self.run = run


class RunFailed(EbbflowError):
    """A run ended, but did not succeed."""

    def __init__(self, run: Run) -> None:
        why = f": {run.error}" if run.error else ""
        super().__init__(f"run {run.id} of `{run.workflow}` {run.state}{why}")
        self.run = run


class ApiError(EbbflowError):
    """The server rejected a request.

    `code` is stable and for programs, `message` is for people, `request_id` finds the request in the server's log.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Any = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in _TEMPORARY or self.code == "request_in_progress"


class BadRequest(ApiError):
    """400: the request cannot be parsed."""


class Unauthorized(ApiError):
    """401: there is no token, or it is not accepted."""


class Forbidden(ApiError):
    """403: the caller may see the resource but not do this."""


class NotFound(ApiError):
    """404: the resource does not exist, or the caller may not see it."""


class Conflict(ApiError):
    """409: the request conflicts with the current state."""


class AttemptLost(Conflict):
    """409 `attempt_lost`: the attempt no longer belongs to this worker."""


class Unprocessable(ApiError):
    """422: the request is understood and invalid; `details` lists the problems."""


class TooManyRequests(ApiError):
    """429: a rate, a quota or the number of listeners is exceeded."""


class Unavailable(ApiError):
    """502, 503 or 504: the request may succeed later."""


_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})

_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: Unprocessable,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def api_error(status: int, body: Any, retry_after: float | None = None) -> ApiError:
    """Return the exception for a response; `body` is its JSON, or its text where a proxy answered instead."""
    if isinstance(body, dict) and "error_code" in body:
        code, message = str(body["error_code"]), str(body.get("message", ""))
        details, request_id = body.get("details"), body.get("request_id")
    else:
        code, details, request_id = "unexpected_response", None, None
        message = f"the server responded with status {status}: {str(body)[:200]}"
    kind = AttemptLost if code == "attempt_lost" else _BY_STATUS.get(status, ApiError)
    return kind(status, code, message, details=details, request_id=request_id, retry_after=retry_after)


class TaskError(EbbflowError):
    """A task failed, and says itself how: raise one of its subclasses.

    `detail` is any JSON value that helps people or programs to deal with the failure.
    """

    failure_class = "transient"

    def __init__(self, message: str, detail: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail


class TransientError(TaskError):
    """The task failed, and another attempt may succeed: the task's retry policy decides."""


class PermanentError(TaskError):
    """The task failed, and no other attempt can succeed."""

    failure_class = "permanent"


class Cancelled(EbbflowError):
    """The attempt must stop: it was taken from this worker, ran out of time, or the worker stops.

    A function need not catch it: the worker reports, hands back or drops the attempt as its `reason` demands.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the attempt must stop: {reason}")
        self.reason = reason
