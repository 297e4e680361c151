"""The listeners of a simulated broker: frames from the simulated network to the dispatcher.

Takes the place of kafka08.network.server.Server, whose promises it keeps: the requests of a
connection are answered one by one and in order, a request that waits hears of its peer's end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from kafka08.errors import ProtocolError
from kafka08.network.connection import Handle
from kafka08.network.memory import UNBOUNDED, RequestMemory
from kafka08.network.peer import Peer, Session, current_peer
from kafka08.network.sending import joined
from kafka08.network.server import ConnectionClosed, Login
from kafka08.protocol.codec import Part
from kafka08.protocol.framing import FrameDecoder
from kafka08.server.requests.listeners import Listening
from kafka08.settings.broker import BrokerConfig
from tests.simulation.network import Acceptor, SimulatedNetwork, SimulatedSocket
from tests.simulation.runtime import SimulatedRuntime

logger = logging.getLogger("kafka.network.Processor")


class Accepted(NamedTuple):
    """A connection that was accepted."""

    sock: SimulatedSocket
    peer: Peer


class SimulatedServer:
    """Accepts from ``start`` to ``stop``."""

    def __init__(
        self,
        runtime: SimulatedRuntime,
        network: SimulatedNetwork,
        port: int,
        name: str,
        max_bytes: int,
    ) -> None:
        self.ports = [port]
        self.memory = RequestMemory(UNBOUNDED)
        self._runtime = runtime
        self._network = network
        self._name = name
        self._max_bytes = max_bytes
        self._served: dict[int, Accepted] = {}
        self._numbers = 0
        self._listener: Acceptor | None = None
        self._none_left = runtime.event()

    @property
    def connections(self) -> int:
        return len(self._served)

    def backlog(self) -> tuple[int, int, int]:
        """As kafka08.network.server.Server.backlog; nothing is queued here."""
        return 0, 0, 0

    def start(self, handle: Handle, logins: Mapping[str, Login] | None = None) -> None:
        assert not logins, "there are no logins in a simulation"
        self._listener = Acceptor(self._runtime, partial(self._accept, handle))
        self._network.listen(self.ports[0], self._listener)

    def stop(self) -> None:
        """Stop accepting, end every connection, wait for those whose requests are served."""
        if self._listener is not None:
            self._network.stop_listening(self.ports[0], self._listener)
        for each in list(self._served.values()):
            each.sock.close()
        if self._served:
            self._none_left.wait(2.0)

    def end_sessions(self, over: Collection[Session]) -> None:
        """Nobody logs in here."""

    def _accept(self, handle: Handle, sock: SimulatedSocket, address: str) -> None:
        self._numbers += 1
        served = self._served[self._numbers] = Accepted(sock, Peer(address, listener=self._name))
        sock.incoming.on_end = served.peer.end
        self._runtime.spawn(f"serve {address}", self._serve, self._numbers, served, handle)

    def _serve(self, number: int, served: Accepted, handle: Handle) -> None:
        try:
            self._serve_all(served, handle)
        except ConnectionClosed as error:
            logger.log(error.level, "Closing socket connection: %s", error)
            if error.reply:
                served.sock.sendall(joined(list(error.reply)))
        except ProtocolError as error:
            logger.error("Closing socket because of error: %s", error)
        except OSError as error:
            logger.debug("Connection ended: %s", error)
        finally:
            served.sock.close()
            del self._served[number]
            if not self._served:
                self._none_left.set()

    def _serve_all(self, served: Accepted, handle: Handle) -> None:
        sock, peer = served
        current_peer.set(peer)
        decoder = FrameDecoder(self._max_bytes)
        clock = self._runtime.clock
        while count := sock.recv_into(decoder.get_buffer()):
            peer.read_at = clock.monotonic()
            for frame in decoder.received(count):
                peer.begun_at = clock.monotonic()
                _answer(sock, peer, handle(frame, peer.address))
                if peer.mute_seconds:
                    pause, peer.mute_seconds = peer.mute_seconds, 0.0
                    self._runtime.sleep(pause)


def _answer(sock: SimulatedSocket, peer: Peer, reply: list[Part] | None) -> None:
    """Nobody keeps the reply, which may have files open."""
    peer.unsent.clear()
    if reply is not None:
        sock.sendall(joined(reply))


class SimulatedListening(Listening):
    """Listens on the simulated network, on one PLAINTEXT listener."""

    def __init__(
        self, network: SimulatedNetwork, config: BrokerConfig, runtime: SimulatedRuntime
    ) -> None:
        super().__init__(config, runtime)
        self._simulated = runtime
        self._network = network

    def bind(self) -> SimulatedServer:  # type: ignore[override]
        (endpoint,) = self.listeners.bound
        largest = self._config.socket_request_max_bytes
        return SimulatedServer(
            self._simulated, self._network, endpoint.port, endpoint.listener, largest
        )
