"""The mark of a topic, or of other nodes, in forms about them: a form is refused if they have
changed since."""

from __future__ import annotations

from werkzeug.exceptions import Conflict

from kafka08.console.site import Visit
from zk import znodes


def _nodes(name: str) -> tuple[str, str]:
    return znodes.topic_path(name), znodes.topic_config_path(name)


def mark_of(visit: Visit, name: str) -> str:
    """Changes whenever the topic does: a form with another mark is about another state."""
    return mark_of_nodes(visit, *_nodes(name))


def mark_of_nodes(visit: Visit, *paths: str) -> str:
    """Changes whenever one of the nodes does, or comes or goes."""
    nodes = [visit.site.zk.exists(path) for path in paths]
    return " ".join("-" if node is None else f"{node.czxid}.{node.version}" for node in nodes)


def check_mark(visit: Visit, name: str) -> None:
    """Raises Conflict."""
    check_mark_of(visit, f"Topic {name}", *_nodes(name))


def check_mark_of(visit: Visit, what: str, *paths: str) -> None:
    """The same with the mark of nodes; ``what`` they are. Raises Conflict."""
    if visit.request.form.get("mark") != mark_of_nodes(visit, *paths):
        raise Conflict(f"{what} has changed since the form was shown. Check it again.")
