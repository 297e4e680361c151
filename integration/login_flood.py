"""Wrong logins as fast as a process can send them: `python -m integration.login_flood PORT SOURCE
COUNT`.

Waits for no answer: each connection sends a whole login at once, and the next one follows as soon
as the broker, or the number of connections, lets it.
"""

from __future__ import annotations

import selectors
import socket
import sys

from integration.sasl import HANDSHAKE_1, authenticate, plain_token

AT_ONCE = 200


def main(port: int, source: str, count: int) -> None:
    handshake = bytes.fromhex(HANDSHAKE_1.replace(" ", ""))
    selector, begun = selectors.DefaultSelector(), 0
    while begun < count or selector.get_map():
        while begun < count and len(selector.get_map()) < AT_ONCE:
            token = authenticate(plain_token(f"user{begun}", "wrong"))
            frames = (len(each).to_bytes(4, "big") + each for each in (handshake, token))
            sock = socket.socket()
            sock.bind((source, 0))
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
            selector.register(sock, selectors.EVENT_WRITE, b"".join(frames))
            begun += 1
        for key, _ in selector.select(1):
            sock = key.fileobj  # type: ignore[assignment]
            try:
                if key.data:
                    sock.sendall(key.data)
                    selector.modify(sock, selectors.EVENT_READ)
                    continue
                if sock.recv(4096):
                    continue
            except OSError:
                pass
            selector.unregister(sock)
            sock.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
