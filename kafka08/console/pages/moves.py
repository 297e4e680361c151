"""Preferred elections, and moves of partitions between brokers with their progress."""

from __future__ import annotations

from typing import NamedTuple

from werkzeug.exceptions import Conflict
from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.console.cluster_state import ClusterState
from kafka08.console.forms import FieldError, Problem, whole
from kafka08.console.pages.cluster import state_of
from kafka08.console.site import Visit
from kafka08.errors import AdminOperationError
from kafka08.topics import elections, moves
from zk import znodes

_FORM = "the form"


class MoveProgress(NamedTuple):
    """A move: ``caught_up`` of the new replicas are in sync."""

    tp: TopicPartition
    before: tuple[int, ...]
    wanted: tuple[int, ...]
    caught_up: int


def elect_form(visit: Visit) -> Response:
    """The partitions that are not led by the preferred replica."""
    state = state_of(visit)
    views = dict(state.partitions())
    rows = [(tp, views[tp]) for tp in state.not_preferred()]
    return visit.render("elect.html", pending=state.elections, rows=rows, state=state)


def elect(visit: Visit) -> Response:
    """Of all partitions listed, or of those chosen."""
    chosen = visit.request.form.getlist("partition")
    if chosen:
        partitions = []
        for text in chosen:
            topic, _, number = text.rpartition(":")
            if not topic or not number.isdecimal():
                raise FieldError("partition", f"{text!r} is not topic:number")
            partitions.append(TopicPartition(topic, int(number)))
    else:
        partitions = state_of(visit).not_preferred()
    if not partitions:
        raise ValueError("All partitions are led by the preferred replica already.")
    elections.start(visit.site.zk, partitions)
    visit.record(
        "preferred election", f"{len(partitions)} partitions", None, list(map(str, partitions))
    )
    return visit.done("/elect", f"An election for {len(partitions)} partitions was asked for.")


def reassign_form(visit: Visit) -> Response:
    """Moves under way, and a proposal for the topics and brokers asked for."""
    state, zk, arguments = state_of(visit), visit.site.zk, visit.request.args
    topics = [word.strip() for word in arguments.get("topics", "").split(",") if word.strip()]
    brokers = arguments.get("brokers", "").strip()
    proposed = rollback = ""
    problem = visit.problem
    if topics and brokers:
        try:
            ids = _ids(state, topics, brokers)
            proposed = znodes.encode_reassignment(moves.proposal(zk, topics, ids)).decode()
            rollback = znodes.encode_reassignment(admin.fetch_assignments(zk, topics)).decode()
        except (ValueError, AdminOperationError) as error:
            problem = Problem.of(error)
    return visit.render(
        "reassign.html",
        status=problem.status if problem else 200,
        brokers=brokers or ",".join(str(broker.id) for broker in state.live),
        problem=problem,
        progress=_progress(visit),
        proposed=proposed,
        refresh=0 if proposed or problem else visit.refresh,
        rollback=rollback,
        topics=",".join(topics),
    )


def _ids(state: ClusterState, topics: list[str], brokers: str) -> list[int]:
    """Raises FieldError."""
    unknown = [topic for topic in topics if topic not in state.topics]
    if unknown:
        raise FieldError("topics", f"there is no topic {unknown[0]}")
    ids = [whole(word.strip(), "brokers") for word in brokers.split(",")]
    down = [id_ for id_ in ids if id_ not in {broker.id for broker in state.live}]
    if down:
        raise FieldError("brokers", f"broker {down[0]} is not up")
    return ids


def _progress(visit: Visit) -> list[MoveProgress]:
    found = []
    for tp, wanted in admin.fetch_reassignments(visit.site.zk).items():
        state = admin.fetch_partition_state(visit.site.zk, *tp)
        isr = state.isr if state else ()
        before = (admin.fetch_assignment(visit.site.zk, tp.topic) or {}).get(tp.partition, ())
        found.append(MoveProgress(tp, before, wanted, sum(replica in isr for replica in wanted)))
    return found


def reassign(visit: Visit) -> Response:
    """Starts the moves of the form's JSON, unless others are under way."""
    listed = moves.parse_moves(_FORM, visit.request.form.get("moves", "").encode())
    if not listed:
        raise FieldError("moves", "the text has no partitions, or is not JSON")
    moves.check_moves(listed)
    live = set(admin.live_broker_ids(visit.site.zk))
    missing = sorted({replica for _, replicas in listed for replica in replicas} - live)
    if missing:
        raise FieldError("moves", f"the brokers {missing} are not registered")
    under_way = admin.fetch_reassignments(visit.site.zk)
    if under_way:
        raise Conflict(f"{len(under_way)} partitions are being moved. Wait until that is done.")
    topics = sorted({tp.topic for tp, _ in listed})
    before = znodes.encode_reassignment(admin.fetch_assignments(visit.site.zk, topics)).decode()
    if not moves.start(visit.site.zk, listed):
        raise FieldError("moves", "none of these partitions exists")
    after = znodes.encode_reassignment(dict(listed)).decode()
    visit.record("reassign", f"{len(listed)} partitions", before, after)
    return visit.render("moved.html", rollback=before, count=len(listed))
