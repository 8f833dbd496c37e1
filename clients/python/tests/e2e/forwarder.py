"""A network that a test can cut: it forwards connections to a server, or closes them."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Forwarder:
    """Forwards connections to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.rejected = 0
        self._lock = threading.Lock()
        self._is_cut = False
        self._open: list[socket.socket] = []
        self._pumps: list[threading.Thread] = []

    def __enter__(self) -> Forwarder:
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        _shut(self._listener)
        self._thread.join()
        for thread in self._pumps:
            thread.join()
        for connection in (self._listener, *self._open):
            connection.close()

    def cut(self) -> None:
        """End all connections, and let no others begin."""
        with self._lock:
            self._is_cut = True
            for connection in self._open:
                _shut(connection)

    def mend(self) -> None:
        """Forward connections again."""
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    if self._is_cut:
                        self.rejected += 1
                        client.close()
                        continue
                    server = socket.create_connection(self._target)
                    self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    self._pumps.append(threading.Thread(target=_pump, args=pair, daemon=True))
                    self._pumps[-1].start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
    _shut(sink)
    _shut(source)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
