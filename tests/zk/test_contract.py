"""The contract on the real ZooKeeper. tests/simulation holds the model to the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.runtime import GeventRuntime, Runtime
from tests.zk import server
from tests.zk.contract import PROMISES
from tests.zk.contract.ground import Promise
from tests.zk.test_client import expire
from zk.client import ZkClient


class RealGround:
    """An empty part of the one server's tree; clients on greenlets, as brokers have them."""

    def __init__(self) -> None:
        self.runtime: Runtime = GeventRuntime(threads=1)
        self._to = server.fresh_chroot()
        self._clients: list[ZkClient] = []

    def client(self) -> ZkClient:
        self._clients.append(server.connect(self._to, gevent=True))
        return self._clients[-1]

    def other(self) -> ZkClient:
        return self.client()

    def expire(self, client: ZkClient) -> None:
        expire(client)

    def break_connection(self, client: ZkClient) -> None:
        server.break_connection(client)

    def lose_answer(self, client: ZkClient, call: str) -> None:
        server.lose_next_answer(client, call)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.runtime.close()


@pytest.fixture
def ground() -> Iterator[RealGround]:
    made = RealGround()
    yield made
    made.close()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_the_real_one_keeps(promise: Promise, ground: RealGround) -> None:
    promise(ground)
