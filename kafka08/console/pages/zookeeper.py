"""The nodes of ZooKeeper, to be read only. Data of nodes that hold credentials is hidden."""

from __future__ import annotations

import math
from typing import NamedTuple
from urllib.parse import quote

from werkzeug.exceptions import Forbidden, NotFound
from werkzeug.wrappers import Response

from kafka08.console.decoders import Decoded, shown
from kafka08.console.shown import iso
from kafka08.console.site import Visit
from zk.access import is_secret
from zk.client import Stat, ZkClient
from zk.errors import NoAuthError, NoNodeError

_SHOWN = 500
_PERMISSIONS = {"create": 4, "delete": 8, "read": 1, "write": 2, "admin": 16}
_HIDDEN = "hidden"
_DIGITS = 20  # of longer names the value does not matter


class Child(NamedTuple):
    """``children`` None: their number cannot be read."""

    name: str
    link: str
    children: int | None


class AclRow(NamedTuple):
    """An entry of an ACL. ``name``: of those in a scheme who have the permissions."""

    scheme: str
    name: str
    permissions: list[str]


def node(visit: Visit, path: str = "") -> Response:
    """A node with its data, and with its children, which have their numbers of children.
    ``path``: below the chroot, without the first slash."""
    zk, path = visit.site.zk, _checked(path)
    try:
        data, stat = _read(zk, path)
        names = sorted(zk.children(path), key=_order)
    except NoNodeError:
        raise NotFound(f"ZooKeeper has no node {path}.") from None
    except NoAuthError:
        raise Forbidden(f"ZooKeeper does not let the console read {path}.") from None
    children = _children(zk, path, names[:_SHOWN])
    more = len(names) - len(children)
    acl = _acl(zk, path)
    return visit.answer(
        "zookeeper.html",
        {
            "path": path,
            "is_hidden": data is None,
            "data": data and data.text,
            "is_cut": data is not None and data.is_cut,
            **_stat_data(stat),
            "acl": acl,
            "children": [{"name": each.name, "children": each.children} for each in children],
            "more_children": more,
        },
        above=_above(path),
        children=children,
        content=data,
        name=path,
        stat=stat,
    )


def _checked(path: str) -> str:
    """The absolute path. Raises NotFound for one that no node can have."""
    names = path.rstrip("/").split("/") if path.strip("/") else []
    for name in names:
        if name in ("", ".", "..") or any(each < " " or "\x7f" <= each < "\xa0" for each in name):
            raise NotFound(f"ZooKeeper has no node /{path}.")
    return "/" + "/".join(names)


def _read(zk: ZkClient, path: str) -> tuple[Decoded | None, Stat]:
    """The data is None if it is hidden, and then it is not even asked for."""
    if is_secret(path):
        stat = zk.exists(path)
        if stat is None:
            raise NoNodeError(path=path)
        return None, stat
    data, stat = zk.get(path)
    return shown(data), stat


def _children(zk: ZkClient, path: str, names: list[str]) -> list[Child]:
    paths = [f"{path.rstrip('/')}/{name}" for name in names]
    counts: list[int | None]
    try:
        counts = [len(each) for each in zk.children_of_all(paths)]
    except NoAuthError:
        counts = [None] * len(paths)
    return [Child(*each) for each in zip(names, map(_link, paths), counts, strict=True)]


def _acl(zk: ZkClient, path: str) -> list[AclRow] | None:
    """None if it cannot be read."""
    try:
        entries, _ = zk.get_acl(path)
    except (NoAuthError, NoNodeError):
        return None
    return [
        AclRow(
            scheme,
            _public(scheme, name),
            [each for each, bit in _PERMISSIONS.items() if bits & bit],
        )
        for bits, scheme, name in entries
    ]


def _public(scheme: str, name: str) -> str:
    """The name of an identity; of the scheme digest it has a hash of the password."""
    return f"{name.partition(':')[0]}:{_HIDDEN}" if scheme == "digest" else name


def _above(path: str) -> list[tuple[str, str]]:
    """The nodes above one, the root first: name and link."""
    names = path.split("/")[1:-1]
    above = [("/", _link("/"))] if path != "/" else []
    return above + [(name, _link("/" + "/".join(names[: at + 1]))) for at, name in enumerate(names)]


def _link(path: str) -> str:
    return f"/zookeeper{quote(path)}"


def _order(name: str) -> tuple[float, str]:
    """Numbers by their size, before other names."""
    is_number = name.isdecimal() and len(name) < _DIGITS
    return int(name) if is_number else math.inf, name


def _stat_data(stat: Stat) -> dict[str, object]:
    return {
        "size_bytes": stat.data_length,
        "version": stat.version,
        "children_version": stat.cversion,
        "acl_version": stat.aversion,
        "created": iso(stat.ctime),
        "changed": iso(stat.mtime),
        "created_zxid": stat.czxid,
        "changed_zxid": stat.mzxid,
        "children_zxid": stat.pzxid,
        "ephemeral_owner": _session(stat.ephemeral_owner),
    }


def _session(id_: int) -> str | None:
    """A session as ZooKeeper's tools write it; None for 0, of a node that stays."""
    return f"0x{id_ % 2**64:x}" if id_ else None
