"""Passes bytes to a broker's port without looking at them, so that a test can cut connections."""

from __future__ import annotations

import contextlib
import socket
import threading

from integration.harness import free_port


class Relay:
    """``port`` leads to ``target``, both on loopback."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target), 10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._open |= {client, server}
        back = threading.Thread(target=_copy, args=[server, client], daemon=True)
        back.start()
        _copy(client, server)
        back.join()
        self._open -= {client, server}
        client.close()
        server.close()

    def cut(self) -> None:
        """End all connections; new ones are taken."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
