"""A console of two clusters in memory."""

from __future__ import annotations

from collections.abc import Mapping

from werkzeug.test import Client, TestResponse

from kafka08.console.clusters.front import Front
from tests.console.scene import ConsoleScene
from tests.fakes.transactions import Begun

NAMES = ("prod", "test.2")


class FrontScene:
    """``prod`` has a topic with messages, a group and a late transaction, ``test.2`` a topic; both
    can be changed. ``settings`` are those of both, ``own`` those of one."""

    def __init__(
        self,
        users: dict[str, str] | None = None,
        own: Mapping[str, Mapping[str, object]] | None = None,
        **settings: object,
    ) -> None:
        values = {"clusters": NAMES, "read_only": False, **settings}
        self.prod, self.test = (
            ConsoleScene(users, name, **{**values, **(own or {}).get(name, {})}) for name in NAMES
        )
        self.scenes = (self.prod, self.test)
        sites = [each.site for each in self.scenes]
        self.front = Front(sites, self.prod.users, self.prod.runtime.sleep)
        self.client = Client(self.front)
        self.prod.runtime.clock.advance(1000)
        self.prod.topic("t", [1, 2], isr=[1])
        self.prod.produce("t", *[b"m"] * 120)
        self.prod.commit("g", "t", 3)
        start_ms = self.prod.runtime.clock.millis() - 90_000
        begun = Begun("id", 1, 7, start_ms, {self.prod.first("t"): 4})
        self.prod.cluster.transactions.begin(begun)
        self.test.topic("other", [1])

    def look(self) -> None:
        for each in self.scenes:
            each.look()

    def get(self, path: str, accept: str = "text/html", **options: object) -> TestResponse:
        return self.client.get(path, headers={"Accept": accept}, **options)  # type: ignore[arg-type]

    def post(self, path: str, **fields: object) -> TestResponse:
        base = {"REMOTE_ADDR": "127.0.0.1"}
        headers = {"Accept": "text/html", "Origin": "http://localhost"}
        return self.client.post(path, data=fields, headers=headers, environ_base=base)
