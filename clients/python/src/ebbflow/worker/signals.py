"""SIGTERM and SIGINT stop a worker in order."""

from __future__ import annotations

import signal
import socket
import threading
from types import FrameType
from typing import Callable

_STOPPING = (signal.SIGTERM, signal.SIGINT)
_DONE = 0


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the number of the signal arrives through the socket."""


def run_with_signals(work: Callable[[], None], on_signal: Callable[[], None]) -> None:
    """Work in a thread, and call `on_signal` for each signal that asks the process to stop.

    A signal handler may interrupt this thread anywhere, also while it holds a lock, so it must not touch locks. Therefore
    the handlers do nothing, and this thread waits for the numbers that the interpreter writes to a socket.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread receives signals.
        work()
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    errors: list[BaseException] = []

    def target() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            sender.send(bytes([_DONE]))

    wakeup = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _ignore) for number in _STOPPING}
    try:
        thread = threading.Thread(target=target, name="ebbflow worker", daemon=True)
        thread.start()
        _receive(receiver, on_signal)
        thread.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        receiver.close()
        sender.close()
    if errors:
        raise errors[0]


def _receive(receiver: socket.socket, on_signal: Callable[[], None]) -> None:
    while True:
        for number in receiver.recv(64):
            if number == _DONE:
                return
            if number in _STOPPING:
                on_signal()
