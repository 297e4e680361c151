"""The mark of a topic in forms about it: a form is refused if the topic has changed since."""

from __future__ import annotations

from werkzeug.exceptions import Conflict

from kafka08.console.site import Visit
from zk import znodes


def mark_of(visit: Visit, name: str) -> str:
    """Changes whenever the topic does: a form with another mark is about another state."""
    nodes = [visit.site.zk.exists(znodes.topic_path(name))]
    nodes.append(visit.site.zk.exists(znodes.topic_config_path(name)))
    return " ".join("-" if node is None else f"{node.czxid}.{node.version}" for node in nodes)


def check_mark(visit: Visit, name: str) -> None:
    """Raises Conflict."""
    if visit.request.form.get("mark") != mark_of(visit, name):
        raise Conflict(f"Topic {name} has changed since the form was shown. Check it again.")
