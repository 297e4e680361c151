"""The texts of ZooKeeper errors are those of the JVM client."""

from __future__ import annotations

import pytest

from zk.errors import NoNodeError, NotEmptyError, ZkClosedError, ZkConnectionError, ZkError


@pytest.mark.parametrize(
    ("kind", "code"),
    [(NoNodeError, "NoNode"), (NotEmptyError, "NotEmpty"), (ZkConnectionError, "ConnectionLoss")],
)
def test_the_text_names_code_and_path(kind: type[ZkError], code: str) -> None:
    error = kind(path="/a")
    prefix = f"org.apache.zookeeper.KeeperException${code}Exception: KeeperErrorCode = {code}"
    assert str(error) == f"{prefix} for /a"
    assert str(kind()) == prefix
    assert (error.path, error.after_loss) == ("/a", False)


def test_a_message_replaces_the_text() -> None:
    error = ZkError("no room", path="/a", after_loss=True)
    assert (str(error), error.path, error.after_loss) == ("no room", "/a", True)


def test_a_closed_client_counts_as_a_lost_connection() -> None:
    with pytest.raises(ZkConnectionError):
        raise ZkClosedError(path="/a")
