"""Forms that set the offsets of a group, or delete it: refused while it has live members."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from werkzeug.exceptions import Conflict
from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.forms import FieldError, Problem, time_ms, whole
from kafka08.console.pages.groups import lag_of
from kafka08.console.site import Visit
from kafka08.errors import AdminOperationError
from kafka08.groups import reset as targets
from kafka08.groups.reset import Offsets
from kafka08.lag.collector import GroupLag

# In a plan, in place of an offset.
_NO_COMMIT = "none"
_KINDS = {
    "": "choose",
    "earliest": "the earliest message",
    "latest": "the end",
    "offset": "an offset",
    "shift": "this many messages forward (or back, with -)",
    "time": "a time",
}


def _page(name: str) -> str:
    return f"/group?{urlencode({'name': name})}"


def reset_form(visit: Visit) -> Response:
    """With a target chosen: the plan, each offset before and after."""
    arguments = visit.request.values
    name, to, at = (arguments.get(key, "").strip() for key in ("name", "to", "at"))
    lag = lag_of(visit, name)
    visit.site.groups.refuse_live(name, lag)
    topic = arguments.get("topic", "")
    plan: Offsets = {}
    problem = visit.problem
    try:
        plan = _plan(visit, lag, topic, to, at) if to else {}
    except (ValueError, AdminOperationError) as error:
        problem = Problem.of(error)
    return visit.render(
        "reset.html",
        status=problem.status if problem else 200,
        at=at,
        kinds=list(_KINDS.items()),
        lag=lag,
        name=name,
        problem=problem,
        plan=[(tp, _now(lag, tp), offset) for tp, offset in sorted(plan.items())],
        to=to,
        topic=topic,
        topics=sorted({tp.topic for tp in lag.partitions}),
    )


def _plan(visit: Visit, lag: GroupLag, topic: str, to: str, at: str) -> Offsets:
    storage = visit.site.groups.storage
    known = [*lag.partitions, *lag.uncommitted]
    partitions = [tp for tp in known if topic in ("", tp.topic)]
    if to == "earliest":
        return targets.starts(storage, partitions)
    if to == "latest":
        return targets.ends(storage, partitions)
    if to == "time":
        return targets.at(storage, partitions, time_ms(at, "at", visit.site.clock.millis()))
    number = whole(at, "at", low=-(2**63) if to == "shift" else 0)
    if to == "shift":
        committed = {tp: each for tp, each in lag.partitions.items() if tp in partitions}
        shifted = {tp: max(each.offset + number, 0) for tp, each in committed.items()}
        return targets.clamp(storage, shifted)
    if to == "offset":
        return targets.clamp(storage, dict.fromkeys(partitions, number))
    raise FieldError("to", f"{to!r} is not one of {', '.join(filter(None, _KINDS))}")


def reset(visit: Visit) -> Response:
    """Writes the offsets of the plan that was shown, if the group is still where it was."""
    form = visit.request.form
    name = form.get("name", "")
    visit.site.observer.collect()
    lag = lag_of(visit, name)
    before: dict[TopicPartition, int | None] = {}
    after: Offsets = {}
    for text in form.getlist("plan"):
        # topic:partition:old:new
        words = text.rsplit(":", 3)
        if len(words) != 4:
            raise FieldError("plan", f"{text!r} is not topic:partition:old:new")
        tp = TopicPartition(words[0], whole(words[1], "partition"))
        after[tp] = whole(words[3], "offset")
        before[tp] = None if words[2] == _NO_COMMIT else whole(words[2], "offset")
        is_known = tp in lag.partitions or tp in lag.uncommitted
        if not is_known or _now(lag, tp) != before[tp]:
            raise Conflict(f"Group {name} has moved in {tp} since the plan was shown. Plan again.")
    if not after:
        raise FieldError("plan", "it has no partitions")
    visit.site.groups.set(name, lag, after)
    visit.record("set offsets", name, _named(before), _named(after))
    visit.site.observer.collect()
    return visit.done(_page(name), f"The offsets of {len(after)} partitions were set.")


def _now(lag: GroupLag, tp: TopicPartition) -> int | None:
    """The committed offset; None without one."""
    found = lag.partitions.get(tp)
    return None if found is None else found.offset


def _named(offsets: Mapping[TopicPartition, int | None]) -> dict[str, int | None]:
    return {str(tp): offset for tp, offset in offsets.items()}


def delete_form(visit: Visit) -> Response:
    name = visit.request.values.get("name", "")
    return visit.render("delete_group.html", name=name, lag=lag_of(visit, name))


def delete(visit: Visit) -> Response:
    name = visit.request.form.get("name", "")
    if visit.request.form.get("typed") != name:
        raise FieldError("typed", f"Type the name of the group, {name}, to delete it.")
    lag = lag_of(visit, name)
    visit.site.groups.delete(name, lag)
    before = {str(tp): each.offset for tp, each in lag.partitions.items()}
    visit.record("delete group", name, before, None)
    visit.site.observer.collect()
    return visit.done("/groups", f"Group {name} was deleted.")
