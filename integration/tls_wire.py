"""A raw connection to a TLS port."""

from __future__ import annotations

import ssl
from pathlib import Path

from integration.wire import Wire


class TlsWire(Wire):
    """``keys``: a PEM file with the client's key and certificate."""

    def __init__(
        self, port: int, authority: Path, keys: Path | None = None, timeout: float = 30
    ) -> None:
        super().__init__(port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(authority))
        if keys is not None:
            context.load_cert_chain(keys)
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        except BaseException:
            self.close()
            raise
